#!/usr/bin/env node
import "../dist/store-api.mjs"
