"""On hundreds of random histories, the job emits the result of the same job as a batch."""

from jobs.revenue import COLUMNS, revenue
from streamproof import Input, as_batch

PAYMENTS = Input(COLUMNS, key="store", name="payments")


def test_revenue_is_the_batch_s(check_job):
    check_job(revenue, PAYMENTS, expect=as_batch())
