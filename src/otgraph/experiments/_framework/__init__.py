"""Common code of all experiments: running, statistics, reports and figures."""
