import {
  assertKnownMembers,
  invalidMember,
  namedEntries,
  requiredText,
  textList,
} from '../../lib/config/config-members.ts';
import { GRANTABLE_CATEGORIES, TOOL_CATEGORIES } from '../../api/v1alpha1/actions.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import type { ToolCategory } from '../../policy/types.ts';
import {
  type NamedProgram,
  PROGRAM_MEMBERS,
  readEnvironment,
  readFolder,
  readProgram,
} from '../../sandbox/confined/read-program.ts';
import { isProgramName } from '../../sandbox/terminal/program-files.ts';

interface ServerEntry {
  name: string;
  /** The category of its tools, by which levels allow them. */
  category: ToolCategory;
}

/** A server that runs as a confined process and talks over its standard input and output. */
export interface LocalServer extends ServerEntry, NamedProgram {
  /** Absolute paths of folders beside its own. */
  read: readonly string[];
  write: readonly string[];
}

/** A program of the system that runs behind the launcher and talks over its standard input and output. */
export interface CommandServer extends ServerEntry {
  /** The name of a program in a folder of the system. */
  command: string;
  arguments: readonly string[];
  environment: Readonly<Record<string, string>>;
  /** Names of programs of the system that it may start. */
  programs: readonly string[];
  /** Absolute path of the folder with what the program loads. */
  folder: string;
  /** Absolute paths of further folders. */
  read: readonly string[];
  write: readonly string[];
}

/** A server that is reached over Streamable HTTP. */
export interface RemoteServer extends ServerEntry {
  url: string;
  /** The environment variable with the bearer token. */
  tokenEnvironment?: string;
}

/** An MCP server that a user configured. */
export type ConfiguredServer = LocalServer | CommandServer | RemoteServer;

/** Whether calls leave this machine. A server over `http` is a program of its user here. */
export function isElsewhere(server: ConfiguredServer): server is RemoteServer {
  return 'url' in server && new URL(server.url).protocol === 'https:';
}

/** What declares that a tool reaches no other system. A server elsewhere is one itself. */
const CLOSED_ACTIONS: readonly string[] = ['code:read', 'code:write'];

/**
 * The host that a call of the tool is sent to, as policies and approvers see it. A server on this machine may send further what it gets,
 * unless its hint denies that. A confined process has no network.
 */
export function hostsOfTool(server: ConfiguredServer, { action }: { action: string }): { hosts?: readonly string[] } {
  if (!('url' in server)) return {};
  return !isElsewhere(server) && CLOSED_ACTIONS.includes(action) ? {} : { hosts: [new URL(server.url).host] };
}

/** The names of variables whose values Temper removes from everything that it prints. */
const SECRET_VARIABLE = /^[A-Z][A-Z0-9_]{0,120}(_TOKEN|_KEY)$/;
const JAVASCRIPT = /\.[cm]?[jt]s$/;
const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];

/**
 * Parses `{servers: […]}` with entries of three forms: `{name, category, folder, program, arguments, environment, read, write}`,
 * `{name, category, command, programs, folder, arguments, environment, read, write}` and `{name, category, url, tokenEnvironment}`. Throws
 * TEMPER_MANIFEST_INVALID with the name of the field.
 */
export function parseServers(file: string, value: unknown): ConfiguredServer[] {
  return namedEntries(file, value, 'servers').map(({ field, entry }) => {
    const name = requiredText(file, `${field}.name`, entry['name']);
    // The names of its tools begin with it, and have at most 63 characters.
    if (name.length > 20) throw invalidMember(file, `${field}.name`, 'must have at most 20 characters');
    const own = { name, category: readCategory(file, `${field}.category`, entry['category']) };
    if (entry['url'] !== undefined) return readRemote(file, field, own, entry);
    if (entry['command'] !== undefined) return readCommand(file, field, own, entry);
    return readLocal(file, field, own, entry);
  });
}

/** A grant opens the tools of the other two categories at every level, and such a grant names no server. */
function readCategory(file: string, field: string, value: Json = 'mcp'): ToolCategory {
  const categories = TOOL_CATEGORIES.filter((category) => !GRANTABLE_CATEGORIES.has(category));
  const found = categories.find((category) => category === value);
  if (found === undefined) throw invalidMember(file, field, `must be one of ${categories.join(', ')}`);
  return found;
}

function readLocal(file: string, field: string, own: ServerEntry, entry: JsonObject): LocalServer {
  assertKnownMembers(file, `${field}.`, entry, ['name', 'category', ...PROGRAM_MEMBERS, 'read', 'write']);
  const named = readProgram(file, field, entry);
  if (!JAVASCRIPT.test(named.program))
    throw invalidMember(file, `${field}.program`, 'must be a JavaScript file; name any other program with command');
  return { ...own, ...named, ...readFurther(file, field, entry) };
}

function readCommand(file: string, field: string, own: ServerEntry, entry: JsonObject): CommandServer {
  const members = ['command', 'programs', 'folder', 'arguments', 'environment', 'read', 'write'];
  assertKnownMembers(file, `${field}.`, entry, ['name', 'category', ...members]);
  const programs = textList(file, `${field}.programs`, entry['programs'] ?? []);
  return {
    ...own,
    command: readProgramName(file, `${field}.command`, entry['command'] ?? null),
    programs: programs.map((name, index) => readProgramName(file, `${field}.programs[${index}]`, name)),
    folder: readFolder(file, `${field}.folder`, entry['folder']),
    arguments: textList(file, `${field}.arguments`, entry['arguments'] ?? []),
    environment: readEnvironment(file, `${field}.environment`, entry['environment'] ?? {}),
    ...readFurther(file, field, entry),
  };
}

function readProgramName(file: string, field: string, value: Json): string {
  const name = requiredText(file, field, value);
  if (isProgramName(name)) return name;
  throw invalidMember(file, field, 'must be the name of a program of the system, without a folder');
}

function readFurther(file: string, field: string, entry: JsonObject): { read: string[]; write: string[] } {
  const folders = (member: string): string[] => readFolders(file, `${field}.${member}`, entry[member] ?? []);
  return { read: folders('read'), write: folders('write') };
}

function readFolders(file: string, field: string, value: Json): string[] {
  return textList(file, field, value).map((folder, index) => readFolder(file, `${field}[${index}]`, folder));
}

function readRemote(file: string, field: string, own: ServerEntry, entry: JsonObject): RemoteServer {
  assertKnownMembers(file, `${field}.`, entry, ['name', 'category', 'url', 'tokenEnvironment']);
  const url = URL.parse(requiredText(file, `${field}.url`, entry['url']));
  const isPlain = url?.protocol === 'http:' && LOOPBACK.includes(url.hostname);
  if (url === null || (url.protocol !== 'https:' && !isPlain) || url.username !== '' || url.password !== '')
    throw invalidMember(
      file,
      `${field}.url`,
      'must be an https URL without user name and password, or http on this machine',
    );
  const variable = entry['tokenEnvironment'];
  if (variable === undefined) return { ...own, url: url.href };
  const tokenEnvironment = requiredText(file, `${field}.tokenEnvironment`, variable);
  if (!SECRET_VARIABLE.test(tokenEnvironment))
    throw invalidMember(
      file,
      `${field}.tokenEnvironment`,
      'must name a variable in upper case that ends with _TOKEN or _KEY',
    );
  return { ...own, url: url.href, tokenEnvironment };
}
