import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';

/** Where a folder is in a Git repository. */
export interface GitReference {
  /** Of the repository, as `git clone` takes it. */
  readonly url: string;
  /** Lower case. */
  readonly host: string;
  readonly port: number;
  readonly isHttps: boolean;
  /** A branch, a tag, the whole id of a commit, or HEAD. */
  readonly name: string;
  /** `''` for the root. */
  readonly folder: string;
  /** The text that names it in messages. */
  readonly text: string;
}

const MAX_LENGTH = 800;
const FORM = /^(https?:\/\/[^\s#?@]+?\.git)(?:#([^\s:]*))?(?::([^\s:#]+))?$/;
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}$/;
const SEGMENT = /^[A-Za-z0-9._-]{1,100}$/;

/** Parses `https://HOST/PATH.git[#NAME][:FOLDER]`. Plain HTTP is for `localhost` only. Throws TEMPER_USAGE. */
export function parseGitReference(text: string): GitReference {
  const [, url = '', name = '', folder = ''] = (text.length <= MAX_LENGTH ? FORM.exec(text) : null) ?? [];
  const parsed = URL.parse(url);
  if (parsed === null) throw invalid(text, 'is not a reference to a Git repository');
  assertName(text, name);
  assertFolder(text, folder);
  return { url, ...serverOf(text, parsed), name: name === '' ? 'HEAD' : name, folder, text };
}

function serverOf(text: string, { protocol, hostname, port }: URL): Pick<GitReference, 'host' | 'port' | 'isHttps'> {
  const isHttps = protocol === 'https:';
  if (!isHttps && hostname !== 'localhost') throw invalid(text, 'must use https');
  const standard = isHttps ? 443 : 80;
  return { host: hostname, port: port === '' ? standard : Number(port), isHttps };
}

function assertName(text: string, name: string): void {
  if (name === '' || (NAME.test(name) && !name.includes('..'))) return;
  throw invalid(text, 'names no valid branch, tag or commit');
}

function assertFolder(text: string, folder: string): void {
  const segments = folder === '' ? [] : folder.split('/');
  if (segments.every((segment) => SEGMENT.test(segment) && segment !== '.' && segment !== '..')) return;
  throw invalid(text, 'names no valid folder of the repository');
}

/** The same folder at exactly one commit. */
export function pinnedReference({ url, folder }: GitReference, commit: string): string {
  return `${url}#${commit}${folder === '' ? '' : `:${folder}`}`;
}

function invalid(text: string, problem: string): TemperError {
  const form = 'https://HOST/PATH.git[#BRANCH, TAG or COMMIT][:FOLDER]';
  return new TemperError('TEMPER_USAGE', `"${printable(text, 300)}" ${problem}; a reference is ${form}`);
}
