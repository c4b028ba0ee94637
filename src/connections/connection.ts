import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { TemperError } from '../lib/errors.ts';
import { type Json, textAt } from '../lib/json.ts';
import { hostProblem, repositoryProblem } from './agent-repository.ts';

const closed = { additionalProperties: false } as const;
const LABEL = '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$';

const approver = Type.String({
  minLength: 1,
  maxLength: 253,
  description: 'The account that applies the repository to the cluster; Approvals name it.',
});
const revocations = Type.Optional(
  Type.Enum(['PullRequest', 'Commit'], {
    description: 'How a gateway writes revocations: with a pull request, or with a commit on the branch itself.',
  }),
);

/** A repository on a server with pull requests. */
const HostedSection = Type.Object(
  {
    type: Type.Enum(['GitHub', 'GitLab', 'Gitea'], { description: 'The interface of the server.' }),
    apiUrl: Type.String({
      pattern: '^https://[^\\s?#@]+$',
      maxLength: 512,
      description: 'The base URL of the REST API. Its host and port must be in `hosts`.',
    }),
    repository: Type.String({
      pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}(/[A-Za-z0-9][A-Za-z0-9._-]{0,99}){1,8}$',
      maxLength: 512,
      description: 'The repository with its owner or groups.',
    }),
    approver,
    revocations,
  },
  closed,
);

/** A repository that is known by its URL alone. */
const RemoteSection = Type.Object(
  {
    type: Type.Literal('Git', { description: "Git's own protocol over HTTPS, without pull requests." }),
    url: Type.String({
      pattern: '^https://[^\\s?#@]+$',
      maxLength: 256,
      description: 'The URL of the repository, as `git clone` takes it. Its host and port must be in `hosts`.',
    }),
    username: Type.Optional(
      Type.String({
        pattern: '^[!-9;-~]+$',
        maxLength: 100,
        description: 'The user name for the token. `git` when absent.',
      }),
    ),
    approver,
    revocations,
  },
  closed,
);

const GitSection = Type.Union([HostedSection, RemoteSection]);

const RepositoryUrl = Type.String({
  pattern: '^https://[^\\s?#@]+$',
  maxLength: 2_048,
  description: 'The URL of the repository, as `git clone` takes it. Its host and port must be in `hosts`.',
});

/** A repository that agents read, and perhaps push to: never one whose files become decisions. */
const RepositorySection = Type.Object(
  {
    url: RepositoryUrl,
    username: Type.Optional(
      Type.String({
        pattern: '^[!-9;-~]+$',
        maxLength: 100,
        description: 'The user name for the token. `git` when absent.',
      }),
    ),
    branchPrefix: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description: 'Branches that agents may push begin with it, such as `agents/`. Absent: none.',
      }),
    ),
    pushDefaultBranch: Type.Optional(
      Type.Boolean({ description: 'Agents may push the default branch too. Default no.' }),
    ),
    pullRequests: Type.Optional(
      Type.Object(
        {
          type: HostedSection.properties.type,
          apiUrl: HostedSection.properties.apiUrl,
          repository: HostedSection.properties.repository,
        },
        { ...closed, description: 'Where agents open pull requests. Absent: nowhere.' },
      ),
    ),
  },
  { ...closed, description: 'The repository that agents read and push to.' },
);

/** The client of an authorization server, whose access tokens are sent in place of the credential. */
const OAuthSection = Type.Object(
  {
    tokenUrl: Type.String({
      pattern: '^https://[^\\s?#@]+$',
      maxLength: 512,
      description: 'The token endpoint. The client secret is sent to its host alone, which `hosts` need not name.',
    }),
    clientId: Type.String({ pattern: '^[!-~]+$', maxLength: 256, description: 'The client ID.' }),
    scopes: Type.Optional(
      Type.Array(Type.String({ pattern: '^[!#-\\[\\]-~]+$', maxLength: 256 }), {
        minItems: 1,
        maxItems: 32,
        description: 'The scopes to ask for. Absent: those that the server gives.',
      }),
    ),
    resource: Type.Optional(
      Type.String({
        pattern: '^https://[^\\s#@]+$',
        maxLength: 512,
        description: 'The resource indicator of RFC 8707: the URL of the server that gets the tokens.',
      }),
    ),
    authentication: Type.Optional(
      Type.Enum(['Basic', 'Post'], {
        description:
          'How the client secret is sent: in the header `authorization`, or in the body. `Basic` when absent.',
      }),
    ),
  },
  closed,
);

/** One entry of `connections`. */
const ConnectionSection = Type.Object(
  {
    name: Type.String({ pattern: LABEL, maxLength: 63, description: 'The name that policies refer to.' }),
    hosts: Type.Array(Type.String({ pattern: '^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?:[0-9]{1,5}$', maxLength: 260 }), {
      minItems: 1,
      maxItems: 20,
      description: 'Exact hosts with their ports. The credential is sent to no other one.',
    }),
    private: Type.Optional(
      Type.Boolean({ description: 'The hosts are names in a private network. Link-local addresses stay refused.' }),
    ),
    namespaces: Type.Array(Type.String({ pattern: LABEL, maxLength: 63 }), {
      minItems: 1,
      maxItems: 1_000,
      description: 'The namespaces that may use the connection.',
    }),
    credentialFile: Type.String({
      minLength: 1,
      maxLength: 4_096,
      description: 'File with the token, read at each use.',
    }),
    caFile: Type.Optional(
      Type.String({ minLength: 1, maxLength: 4_096, description: 'PEM file with the only trusted authorities.' }),
    ),
    header: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z][A-Za-z0-9-]{0,63}$',
        description:
          'The header with the credential in calls of tools. `authorization` with the word Bearer when absent.',
      }),
    ),
    oauth: Type.Optional(OAuthSection),
    git: Type.Optional(GitSection),
    repository: Type.Optional(RepositorySection),
  },
  closed,
);
export type Connection = Static<typeof ConnectionSection>;
export type OAuthConnection = Connection & { oauth: NonNullable<Connection['oauth']> };
export type RepositoryConnection = Connection & { repository: NonNullable<Connection['repository']> };
export type GitConnection = Connection & { git: NonNullable<Connection['git']> };
/** What a request with the credential of a connection needs. Without `credentialFile` the caller has the credential. */
export type ReachedConnection = Pick<Connection, 'name' | 'hosts' | 'private' | 'caFile'> &
  Partial<Pick<Connection, 'credentialFile'>>;
export type HostedGitConnection = ReachedConnection & {
  git: Pick<Static<typeof HostedSection>, 'type' | 'apiUrl' | 'repository'>;
};
export type RemoteGitConnection = ReachedConnection & { git: Pick<Static<typeof RemoteSection>, 'url' | 'username'> };

/** The section `connections` of a configuration. */
const ConnectionsSection = Type.Array(ConnectionSection, {
  maxItems: 100,
  description: 'Credentials, each tied to exact hosts and to the namespaces that may use it.',
});

const check = Compile(ConnectionsSection);

/** Checks a `connections` section; absent: no connections. Throws TEMPER_CONFIGURATION_INVALID with the field and the rule; `source` names the configuration. */
export function parseConnections(value: unknown, source: string): Connection[] {
  if (value === undefined) return [];
  if (!check.Check(value)) {
    const first = firstError(value);
    throw invalid(source, `connections${first?.instancePath ?? ''} ${first?.message ?? 'is invalid'}`);
  }
  for (const [index, connection] of value.entries()) {
    const problem = problemOf(connection, value.slice(0, index)) ?? repositoryProblem(connection, value);
    if (problem !== undefined) throw invalid(source, `connections/${index}${problem}`);
  }
  return value;
}

/** Of the two forms of a git section only the one that its type names says what is wrong, and the type itself comes first. */
function firstError(value: unknown) {
  const errors = check.Errors(value).filter(({ instancePath, schemaPath }) => {
    const index = /^\/(\d+)\/git/.exec(instancePath)?.[1];
    const entry: unknown = Array.isArray(value) && index !== undefined ? value[Number(index)] : undefined;
    const other = textAt(entry as Json, ['git', 'type']) === 'Git' ? 0 : 1;
    return !schemaPath.includes(`/git/anyOf/${other}`);
  });
  return errors.find(({ instancePath }) => instancePath.endsWith('/git/type')) ?? errors[0];
}

function problemOf(
  { name, hosts, header, oauth, git }: Connection,
  earlier: readonly Connection[],
): string | undefined {
  if (earlier.some((other) => other.name === name))
    return `/name "${name}" is used twice; give each connection its own`;
  const port = hosts.find((host) => Number(host.split(':')[1]) > 65_535);
  if (port !== undefined) return `/hosts "${port}" has no valid port; use 1 to 65535`;
  if (oauth !== undefined) return oauthProblem(oauth, header, git);
  if (git === undefined) return undefined;
  const [field, text] = git.type === 'Git' ? ['url', git.url] : ['apiUrl', git.apiUrl];
  return hostProblem(`/git/${field}`, text, hosts);
}

function oauthProblem(
  { tokenUrl }: OAuthConnection['oauth'],
  header: string | undefined,
  git: Connection['git'],
): string | undefined {
  if (!URL.canParse(tokenUrl)) return '/oauth/tokenUrl is not a URL';
  if (git !== undefined) return '/oauth is for calls of tools; use another connection for git';
  if (header === undefined) return undefined;
  return '/header has no effect with oauth, whose tokens are bearer tokens; remove it';
}

/**
 * The connection for a namespace. Throws TEMPER_CONNECTION_DENIED, with the same message for an unknown name and for one that the namespace
 * may not use, so that a tenant cannot find out which exist.
 */
export function gitConnectionFor(connections: readonly Connection[], name: string, namespace: string): GitConnection {
  const found = connections.find((connection) => connection.name === name);
  if (found === undefined || !found.namespaces.includes(namespace)) {
    throw new TemperError(
      'TEMPER_CONNECTION_DENIED',
      `no connection "${name}" is configured for namespace "${namespace}"; ask the platform team to add the namespace to it`,
    );
  }
  const { git } = found;
  if (git !== undefined) return { ...found, git };
  throw new TemperError(
    'TEMPER_CONNECTION_DENIED',
    `connection "${name}" has no git section, so nothing is shared through it`,
  );
}

function invalid(source: string, problem: string): TemperError {
  return new TemperError('TEMPER_CONFIGURATION_INVALID', `${source}: ${problem}`);
}
