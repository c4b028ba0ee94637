import { isSafeBranchName } from '../git/branch-name.ts';

/** A repository behind the interface of a server. */
interface Hosted {
  readonly apiUrl: string;
  readonly repository: string;
}

interface PushableRepository {
  readonly url: string;
  readonly branchPrefix?: string;
  readonly pullRequests?: Hosted;
}

/** Known by its URL, or by the interface of its server. */
type GitOpsRepository = { readonly type: 'Git'; readonly url: string } | (Hosted & { readonly type: string });

/** What decides whether agents may have a repository with a connection. */
interface Entry {
  readonly name: string;
  readonly hosts: readonly string[];
  readonly repository?: PushableRepository;
  readonly git?: GitOpsRepository;
  readonly oauth?: object;
}

/** What is wrong with the repository that agents use with a connection: the field and the rule. `all`: the connections of the configuration. */
export function repositoryProblem({ hosts, repository, git, oauth }: Entry, all: readonly Entry[]): string | undefined {
  if (repository === undefined) return undefined;
  if (git !== undefined || oauth !== undefined)
    return `/repository is for agents; use another connection for ${git === undefined ? 'oauth' : 'git'}`;
  const { url, branchPrefix, pullRequests } = repository;
  if (branchPrefix !== undefined && !isSafeBranchName(`${branchPrefix}x`))
    return '/repository/branchPrefix must be the beginning of the name of a branch, such as agents/';
  return (
    hostProblem('/repository/url', url, hosts) ??
    (pullRequests === undefined
      ? undefined
      : hostProblem('/repository/pullRequests/apiUrl', pullRequests.apiUrl, hosts)) ??
    sharedProblem(repository, all)
  );
}

/** A credential goes to the hosts of its connection alone. */
export function hostProblem(field: string, text: string, hosts: readonly string[]): string | undefined {
  const url = URL.parse(text);
  if (url === null) return `${field} is not a URL`;
  const host = `${url.hostname}:${url.port === '' ? '443' : url.port}`;
  if (hosts.includes(host)) return undefined;
  return `${field} leads to ${host}, which is not in hosts; add it there, or correct the URL`;
}

/** What is merged into a repository of GitOps is applied to the cluster, Approvals too: no agent may propose anything there. */
function sharedProblem(repository: PushableRepository, all: readonly Entry[]): string | undefined {
  const owner = all.find(({ git }) => git !== undefined && isSame(repository, git));
  return owner === undefined
    ? undefined
    : `/repository is the one that connection "${owner.name}" shares tools with; give agents another repository`;
}

interface Location {
  host: string;
  path: string;
}

/** In doubt it is: an interface may be on another host of the server, and below a path of its own. */
function isSame({ url, pullRequests }: PushableRepository, git: GitOpsRepository): boolean {
  const own = [locationOf(url), ...(pullRequests === undefined ? [] : [hostedLocation(pullRequests)])];
  const other = 'url' in git ? locationOf(git.url) : hostedLocation(git);
  return own.some(({ host, path }) => host === other.host && (isEnd(path, other.path) || isEnd(other.path, path)));
}

function isEnd(path: string, end: string): boolean {
  return `/${path}`.endsWith(`/${end}`);
}

function locationOf(text: string): Location {
  const { hostname = '', pathname = '' } = URL.parse(text) ?? {};
  return { host: hostname.replace(/^api\./, ''), path: pathOf(pathname) };
}

function hostedLocation({ apiUrl, repository }: Hosted): Location {
  return { host: locationOf(apiUrl).host, path: pathOf(repository) };
}

/** Servers read paths in any case, with `.git` or without, and decoded. */
function pathOf(text: string): string {
  const decoded = text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return decoded
    .toLowerCase()
    .replaceAll(/^\/+|\/+$/g, '')
    .replace(/\.git$/, '');
}
