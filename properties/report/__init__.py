"""Reports as pages, text, JSON, JUnit XML and SARIF; results of mutation testing; recordings of witnesses."""
