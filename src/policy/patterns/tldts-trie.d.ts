/** The rules of the Public Suffix List as `tldts` stores them: a tree of labels, from the right, in flat arrays. Its types do not name it. */
declare module 'tldts/dist/cjs/src/data/trie.js' {
  /** Not 0: a rule ends here. */
  export const nodeFlags: Uint8Array;
  /** The edges of node N are those from `edgeStart[N]` to before `edgeStart[N + 1]`. */
  export const edgeStart: ArrayLike<number>;
  export const edgeChild: ArrayLike<number>;
  /** How many characters of `labelText` are the label of the edge; they follow those of the edge before. */
  export const edgeLength: ArrayLike<number>;
  export const labelText: string;
  export const rulesRoot: number;
}

/** The look-up in this tree. The index of the package contains another copy of both. */
declare module 'tldts/dist/cjs/src/suffix-trie.js' {
  interface FoundSuffix {
    publicSuffix: string | null;
    /** By a rule of a registry. */
    isIcann: boolean | null;
    /** By a rule of a platform. Both are false for a name that no rule covers. */
    isPrivate: boolean | null;
  }
  const exported: {
    default: (
      hostname: string,
      options: { allowIcannDomains: boolean; allowPrivateDomains: boolean },
      found: FoundSuffix,
    ) => void;
  };
  export default exported;
}
