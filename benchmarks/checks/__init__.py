"""What checks cost beside the witnesses: whole commands, the judging of histories, reports, TLC."""
