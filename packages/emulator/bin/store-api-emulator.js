#!/usr/bin/env node
import "../dist/store-api-emulator.mjs"
