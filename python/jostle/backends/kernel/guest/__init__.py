"""The program that runs beside the TCP stack under test: `python -m guest JOB_FOLDER`.

It knows the standard library only, because it runs in a guest kernel (or as root on this machine)
with whatever Python started jostle. `JOB_FOLDER/job.json` tells it what to do (see
`jostle.backends.kernel.job`); it leaves `samples` and `events.json` there.
"""
