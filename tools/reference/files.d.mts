export declare const outdated: (pages?: ReadonlyMap<string, string>) => ReadonlyArray<string>
export declare const write: () => number
