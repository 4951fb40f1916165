"""Guest program, which runs the flows on the TCP stack under test: `python -m guest JOB_FOLDER`.

It uses only the standard library, because it runs in a guest kernel (or as root on this machine)
with the Python that started jostle. It reads `JOB_FOLDER/job.json` (see
`jostle.backends.kernel.job`) and writes `samples` and `events.json` there.
"""
