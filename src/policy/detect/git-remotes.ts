import { isIPv4 } from 'node:net';

/** Commands of Git that take a remote, as the first word of a command line without its program. */
const COMMANDS: ReadonlySet<string> = new Set([
  'archive',
  'clone',
  'fetch',
  'ls-remote',
  'pull',
  'push',
  'remote',
  'submodule',
]);

/**
 * True when Git could connect elsewhere for the text: as one argument, as the value of an option in it, or as a command line of Git. Git itself
 * takes every `name:path` without a slash before the colon for a host, also `HEAD:path`; here a name is a host only when it has the form of a
 * domain name or of an address.
 */
export function namesGitRemote(text: string): boolean {
  if (text.includes('://')) return true;
  const at = text.indexOf('@');
  if (at > 0 && text.indexOf(':', at) > at) return true;
  return [text.trim(), ...commandWords(text)].some(isRemoteArgument);
}

/** The words of a command line of Git as a shell could split it. None of another text: a sentence may contain `parser.ts:12`. */
function commandWords(text: string): string[] {
  const split = (line: string): string[] => line.split(/[\s;&|()<>`$]+/).filter((word) => word !== '');
  const words = split(text.replaceAll(/["']/g, ''));
  const [first = ''] = words;
  const isCommand = COMMANDS.has(first) || /^--?\w/.test(first) || words.some(isGit);
  return isCommand ? [...words, ...split(text.replaceAll(/["'\\]/g, ''))] : [];
}

function isGit(word: string): boolean {
  const program = word.split(/[/\\]/).at(-1)?.toLowerCase();
  return program === 'git' || program === 'git.exe';
}

/** What follows each `=` may be the value of an option or of a setting. */
function isRemoteArgument(argument: string): boolean {
  const parts = argument.split('=');
  return parts.some((part, index) => isShare(part) || isTransport(part, index < parts.length - 1));
}

/** A share of another computer, which some systems mount by its name: `//host/path`, also with backslashes. */
function isShare(text: string): boolean {
  if (!/^[/\\]{2}/.test(text)) return false;
  const [host = '', ...path] = text.slice(2).split(/[/\\]/);
  return host !== '' && path.length > 0 && !/\s/.test(host);
}

/** `host:path`, `[host]:path` where the host may have a port, or `helper::address`, where a program of Git connects. */
function isTransport(text: string, continues: boolean): boolean {
  const end = text.startsWith('[') ? text.indexOf(']:') + 1 : text.indexOf(':');
  if (end <= 0 || (end === text.length - 1 && !continues)) return false;
  const name = text.slice(0, end);
  if (text[end + 1] === ':' && /^[a-z0-9][a-z0-9+.-]*$/i.test(name)) return true;
  return name.startsWith('[') ? isBracketedHost(name.slice(1, -1)) : isHost(name);
}

function isBracketedHost(text: string): boolean {
  const [host = '', ...rest] = text.split(':');
  return rest.length > 1 || isHost(host);
}

/** A name with a dot whose last label begins with a letter, which tags such as v1.2.3-rc1 do not have, or an address. */
function isHost(name: string): boolean {
  const labels = name.split('.');
  if (labels.length > 1 && labels.at(-1) === '') labels.pop();
  if (labels.includes('') || !/^[\p{L}\p{N}._-]+$/u.test(name)) return false;
  return isAddress(name) || (labels.length > 1 && /^\p{L}/u.test(labels.at(-1) ?? ''));
}

/** An IPv4 address in each form that resolvers read, such as 134744072; those below 1.0.0.0 reach no host. */
function isAddress(name: string): boolean {
  if (!/^\d[\da-fx.]*$/i.test(name)) return false;
  const { hostname = '' } = URL.parse(`http://${name}`) ?? {};
  return isIPv4(hostname) && !hostname.startsWith('0.');
}
