import { isAbsolute } from 'node:path';
import {
  assertKnownMembers,
  invalidMember,
  namedEntries,
  requiredText,
  textList,
} from '../../lib/config/config-members.ts';
import { isSafeBranchName } from '../../git/branch-name.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import { secretVariable } from '../services/secret-variable.ts';

/** A credential of the user, tied to exact hosts. */
export interface UserConnection {
  name: string;
  /** `host:port`. */
  hosts: string[];
  /** The hosts are names in a private network. */
  isPrivate: boolean;
  tokenEnvironment: string;
  /** Absolute path of the only trusted authorities, PEM. */
  caFile?: string;
  /** Absent: `authorization` with the word Bearer. */
  header?: string;
  /** The repository that agents read and push to with it. */
  git?: UserRepository;
}

/** A repository elsewhere, and what agents may change in it. */
interface UserRepository {
  /** As `git clone` takes it. */
  url: string;
  /** Absent: `git`. */
  username?: string;
  /** Branches that agents may push begin with it; absent: none. */
  branchPrefix?: string;
  mayPushDefaultBranch: boolean;
  pullRequests?: { type: 'GitHub' | 'GitLab' | 'Gitea'; apiUrl: string; repository: string };
}

const MEMBERS = ['name', 'hosts', 'private', 'tokenEnvironment', 'caFile', 'header', 'git'];
const GIT_MEMBERS = ['url', 'username', 'branchPrefix', 'pushDefaultBranch', 'pullRequests'];
const SERVERS = ['GitHub', 'GitLab', 'Gitea'] as const;
const USER_NAME = /^[!-9;-~]{1,100}$/;
const REPOSITORY = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}(\/[A-Za-z0-9][A-Za-z0-9._-]{0,99}){1,8}$/;
const MAX_URL = 2_048;
const HOST = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?:[0-9]{1,5}$/;
const HEADER = /^[A-Za-z][A-Za-z0-9-]{0,63}$/;
const MAX_HOSTS = 20;

/** Parses `{connections: [{name, hosts, …}]}`. Throws TEMPER_MANIFEST_INVALID with the name of the field. */
export function parseUserConnections(file: string, value: unknown): UserConnection[] {
  return namedEntries(file, value, 'connections').map(({ field, entry }) => {
    assertKnownMembers(file, `${field}.`, entry, MEMBERS);
    const { name, hosts: listed = [], private: isPrivate = false, tokenEnvironment = '', caFile, header, git } = entry;
    const hosts = hostsOf(file, `${field}.hosts`, listed);
    return {
      name: requiredText(file, `${field}.name`, name),
      hosts,
      isPrivate: flagOf(file, `${field}.private`, isPrivate),
      tokenEnvironment: secretVariable(file, `${field}.tokenEnvironment`, tokenEnvironment),
      ...(caFile === undefined ? {} : { caFile: absolutePath(file, `${field}.caFile`, caFile) }),
      ...(header === undefined ? {} : { header: headerOf(file, `${field}.header`, header) }),
      ...(git === undefined ? {} : { git: repositoryOf(file, `${field}.git`, git, hosts) }),
    };
  });
}

function repositoryOf(file: string, field: string, value: Json, hosts: readonly string[]): UserRepository {
  if (!isJsonObject(value)) throw invalidMember(file, field, 'must be an object');
  assertKnownMembers(file, `${field}.`, value, GIT_MEMBERS);
  const { url = '', username, branchPrefix, pushDefaultBranch = false, pullRequests } = value;
  return {
    url: urlOn(file, `${field}.url`, url, hosts),
    ...(username === undefined ? {} : { username: matching(file, `${field}.username`, username, USER_NAME) }),
    ...(branchPrefix === undefined ? {} : { branchPrefix: prefixOf(file, `${field}.branchPrefix`, branchPrefix) }),
    mayPushDefaultBranch: flagOf(file, `${field}.pushDefaultBranch`, pushDefaultBranch),
    ...(pullRequests === undefined
      ? {}
      : { pullRequests: serverOf(file, `${field}.pullRequests`, pullRequests, hosts) }),
  };
}

function serverOf(file: string, field: string, value: Json, hosts: readonly string[]) {
  if (!isJsonObject(value)) throw invalidMember(file, field, 'must be an object');
  assertKnownMembers(file, `${field}.`, value, ['type', 'apiUrl', 'repository']);
  const { type: given, apiUrl = '', repository = '' } = value;
  const type = SERVERS.find((one) => one === given);
  if (type === undefined) throw invalidMember(file, `${field}.type`, `must be one of ${SERVERS.join(', ')}`);
  return {
    type,
    apiUrl: urlOn(file, `${field}.apiUrl`, apiUrl, hosts),
    repository: matching(file, `${field}.repository`, repository, REPOSITORY),
  };
}

/** A credential goes to no other host. */
function urlOn(file: string, field: string, value: Json, hosts: readonly string[]): string {
  const text = requiredText(file, field, value);
  const url = text.length <= MAX_URL && /^https:\/\/[^\s?#@]+$/.test(text) ? URL.parse(text) : null;
  if (url === null) throw invalidMember(file, field, 'must be an https URL without user name, query and fragment');
  if (hosts.includes(`${url.hostname}:${url.port === '' ? '443' : url.port}`)) return text;
  throw invalidMember(file, field, 'must be on one of the hosts of the connection');
}

/** Such as `temper/`. */
function prefixOf(file: string, field: string, value: Json): string {
  const prefix = requiredText(file, field, value);
  if (isSafeBranchName(`${prefix}x`)) return prefix;
  throw invalidMember(file, field, 'must be the beginning of the name of a branch, such as temper/');
}

function matching(file: string, field: string, value: Json, form: RegExp): string {
  const text = requiredText(file, field, value);
  if (form.test(text)) return text;
  throw invalidMember(file, field, `must match ${form.source}`);
}

function flagOf(file: string, field: string, value: Json): boolean {
  if (typeof value === 'boolean') return value;
  throw invalidMember(file, field, 'must be true or false');
}

function hostsOf(file: string, field: string, value: Json): string[] {
  const hosts = textList(file, field, value);
  if (hosts.length === 0 || hosts.length > MAX_HOSTS)
    throw invalidMember(file, field, `must have 1 to ${MAX_HOSTS} hosts`);
  const wrong = hosts.find((host) => !HOST.test(host) || Number(host.split(':')[1]) > 65_535);
  if (wrong === undefined) return hosts;
  throw invalidMember(file, field, 'must be hosts with their ports, such as api.example.com:443');
}

function absolutePath(file: string, field: string, value: Json): string {
  const path = requiredText(file, field, value);
  if (isAbsolute(path)) return path;
  throw invalidMember(file, field, 'must be an absolute path');
}

function headerOf(file: string, field: string, value: Json): string {
  const header = requiredText(file, field, value);
  if (HEADER.test(header)) return header;
  throw invalidMember(file, field, 'must be the name of a header');
}
