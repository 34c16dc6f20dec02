#!/bin/bash
exec python3 tools/dev/count_tests_test.py
