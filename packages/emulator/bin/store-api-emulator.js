#!/usr/bin/env -S node --
// Behind --, Node 20 leaves --env-file to this program.
import "../dist/bin.js"
