import { createHash } from 'node:crypto';

export type ObjectType = 'commit' | 'tree' | 'blob' | 'tag';

export interface GitObject {
  readonly type: ObjectType;
  readonly content: Buffer;
}

/** The id of no object: the old value of a branch that a push creates. */
export const NO_OBJECT = '0'.repeat(40);

/** 40 lower-case hexadecimal digits. Repositories with SHA-256 ids are refused before any id is read. */
export function isObjectId(text: string): boolean {
  return /^[0-9a-f]{40}$/.test(text);
}

export function objectId({ type, content }: GitObject): string {
  return createHash('sha1').update(`${type} ${content.length}\0`).update(content).digest('hex');
}
