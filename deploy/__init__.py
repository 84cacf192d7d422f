"""What installs the program: the Helm chart, the plain manifests made from it, and what writes their generated parts."""
