/** One challenge of a `WWW-Authenticate` header. */
export interface Challenge {
  /** Lower case. */
  readonly scheme: string;
  readonly parameters: Readonly<Record<string, string>>;
}

const MAX_CHALLENGES = 8;
/** A scheme, or one parameter with a quoted or a plain value. */
const PART = /[\s,]*(?:([A-Za-z0-9_-]+)\s*=\s*(?:"([^"\\]*)"|([^\s",]+))|([A-Za-z0-9_-]+))/y;

/** The challenges of a header, RFC 9110. A header that is none has no challenge. */
export function parseChallenges(header: string): Challenge[] {
  const challenges: { scheme: string; parameters: Record<string, string> }[] = [];
  PART.lastIndex = 0;
  for (let match = PART.exec(header); match !== null; match = PART.exec(header)) {
    const [, name, quoted, plain, scheme] = match;
    if (scheme !== undefined) challenges.push({ scheme: scheme.toLowerCase(), parameters: {} });
    else if (name !== undefined)
      Object.assign(challenges.at(-1)?.parameters ?? {}, { [name.toLowerCase()]: quoted ?? plain ?? '' });
    if (challenges.length > MAX_CHALLENGES) break;
  }
  return challenges;
}
