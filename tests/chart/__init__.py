"""Tests of the Helm chart and the plain manifests: rendered offline by Helm's own engine, checked against the API's schemas."""
