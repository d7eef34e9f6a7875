/** What a doc comment says. */
export interface Doc {
  readonly text: string
  readonly line: number
  readonly tags: ReadonlyArray<string>
  readonly since: string | undefined
  readonly category: string | undefined
  /** With their fences. */
  readonly examples: ReadonlyArray<string>
  readonly see: ReadonlyArray<string>
}

/** A field of options, of a service, of an error or a schema; `header.name` is a field of a field. */
export interface Field {
  readonly path: string
  readonly text: string
}

/** A declaration that is exported; a value and a type of one name are two. */
export interface Entry {
  readonly name: string
  readonly kind: "class" | "constant" | "function" | "type"
  readonly signature: string
  readonly fields: ReadonlyArray<Field>
  readonly line: number
  readonly doc: Doc | undefined
}

export interface Module {
  readonly name: string
  /** Relative to the root. */
  readonly file: string
  readonly doc: Doc | undefined
  readonly entries: ReadonlyArray<Entry>
  /** What it imports of other modules of ours: a name, or with none the module. */
  readonly imports: ReadonlyArray<{ readonly alias: string; readonly module: string; readonly name?: string }>
  readonly reexports: ReadonlyArray<{ readonly name: string; readonly from: string }>
}

export interface Package {
  readonly name: string
  readonly title: string
  readonly doc: Doc | undefined
  readonly modules: ReadonlyArray<Module>
}

export declare const read: (overlay?: ReadonlyMap<string, string>) => ReadonlyArray<Package>
