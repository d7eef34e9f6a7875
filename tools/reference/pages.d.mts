import type { Package } from "./model.mjs"

export declare const render: (packages: ReadonlyArray<Package>) => ReadonlyMap<string, string>
