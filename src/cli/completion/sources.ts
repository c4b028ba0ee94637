import { ACTION_TYPES, BUILTIN_LEVELS, FORGE_MODES, TOOL_APIS, TOOL_CATEGORIES } from '../../api/v1alpha1/actions.ts';
import { USAGE_GROUPS } from '../../ledger/usage/usage-groups.ts';

/** Names that neither the cluster nor a collection of the state folder lists. */
export type ListedNames =
  | 'built-in and forged tools'
  | 'servers'
  | 'accepted tools of a server'
  | 'capability kinds'
  | 'subjects of the audit'
  | 'suspensions'
  | 'kinds'
  | 'names of the kind'
  | 'verbs';

/** Where the candidates for an argument or for the value of an option come from. */
export type Source =
  | 'files'
  | 'folders'
  | { readonly values: readonly string[] }
  /** The names of the objects of this kind. */
  | { readonly objects: string }
  | { readonly names: ListedNames }
  /** Nothing is offered, and why. */
  | { readonly free: string };

const FREE_TEXT: Source = { free: 'text of the user' };
const NUMBER: Source = { free: 'a number' };
const ADDRESS: Source = { free: 'an address or a reference elsewhere' };
const OF_GATEWAY: Source = { free: 'only the gateway lists them, with a token for each request' };
const TOOLS: Source = { objects: 'tools' };
const AGENTS: Source = { objects: 'agents' };
const SESSIONS: Source = { objects: 'sessions' };
const REQUESTS: Source = { objects: 'approvalrequests' };
const RATINGS = Array.from({ length: 11 }, (_, rating) => String(rating));

/** By the name of the argument, or by the verb and this name where a verb differs. */
export const ARGUMENTS: Readonly<Record<string, Source>> = {
  action: { values: ['retry', 'drop'] },
  agent: AGENTS,
  file: 'files',
  files: 'files',
  folder: 'folders',
  id: OF_GATEWAY,
  kind: { names: 'kinds' },
  kinds: { names: 'kinds' },
  name: { names: 'names of the kind' },
  names: { names: 'names of the kind' },
  paths: 'files',
  query: FREE_TEXT,
  rating: { values: RATINGS },
  reference: ADDRESS,
  request: REQUESTS,
  'requests name': REQUESTS,
  server: { names: 'servers' },
  session: SESSIONS,
  task: SESSIONS,
  text: FREE_TEXT,
  tool: TOOLS,
  trigger: { free: 'the spec of the agent has them' },
  verb: { names: 'verbs' },
};

/** By the long name of the option, or by the verb and this name where a verb differs. */
export const OPTIONS: Readonly<Record<string, Source>> = {
  a2a: NUMBER,
  action: { values: ACTION_TYPES },
  agent: AGENTS,
  'agent-uid': NUMBER,
  api: { values: TOOL_APIS },
  approver: { free: 'an account of the cluster' },
  attestation: 'files',
  'base-url': ADDRESS,
  branch: ADDRESS,
  by: { values: USAGE_GROUPS.map((group) => group.toLowerCase()) },
  category: { values: TOOL_CATEGORIES },
  config: 'files',
  connection: { free: 'the file of connections may not be given yet' },
  connections: 'files',
  context: { free: 'kubectl config get-contexts lists them' },
  digest: { free: 'what temper mcp tools printed, so that a user has read it' },
  domain: ADDRESS,
  'egress-token': 'files',
  endpoints: 'folders',
  file: 'files',
  filename: 'files',
  folder: 'folders',
  forge: { values: FORGE_MODES },
  'gateway-key': FREE_TEXT,
  gitops: 'folders',
  grace: NUMBER,
  head: 'files',
  homes: 'folders',
  host: ADDRESS,
  input: FREE_TEXT,
  'key-environment': FREE_TEXT,
  keys: 'files',
  kill: AGENTS,
  kind: { names: 'capability kinds' },
  kubeconfig: 'files',
  level: { values: BUILTIN_LEVELS },
  'max-output-tokens': NUMBER,
  'max-tokens': NUMBER,
  memory: FREE_TEXT,
  'serve mcp-bridge memory': NUMBER,
  message: FREE_TEXT,
  'policy explain message': AGENTS,
  model: { free: 'names of the provider' },
  'model-script': 'files',
  namespace: { free: 'users of one namespace may not list the others' },
  'operator-key': FREE_TEXT,
  'out-dir': 'folders',
  path: 'files',
  policy: { objects: 'trustpolicies' },
  port: NUMBER,
  program: FREE_TEXT,
  'program-heap': NUMBER,
  'program-homes': 'folders',
  promote: TOOLS,
  providers: 'files',
  publish: FREE_TEXT,
  reason: FREE_TEXT,
  'response-format': { values: ['json'] },
  resume: { names: 'suspensions' },
  run: 'folders',
  schedule: OF_GATEWAY,
  'policy explain schedule': FREE_TEXT,
  script: 'files',
  selector: FREE_TEXT,
  session: SESSIONS,
  sessions: NUMBER,
  since: FREE_TEXT,
  skills: 'folders',
  spawn: AGENTS,
  state: 'folders',
  subject: { names: 'subjects of the audit' },
  subscribe: FREE_TEXT,
  system: FREE_TEXT,
  tail: NUMBER,
  'temper-namespace': { free: 'users of one namespace may not list the others' },
  tier: { values: ['Agent', 'Shared'] },
  token: 'files',
  tool: { names: 'built-in and forged tools' },
  'mcp accept tool': { free: 'only the server lists them, which would have to start' },
  'mcp manifest tool': { names: 'accepted tools of a server' },
  tools: 'files',
  'trusted-key': 'files',
  url: ADDRESS,
  values: 'files',
  wait: FREE_TEXT,
  webhooks: NUMBER,
  workspace: 'folders',
};

/** The source for an argument, or the value of an option, of a verb. Undefined when the tables have none. */
export function sourceOf(table: Readonly<Record<string, Source>>, verb: string, name: string): Source | undefined {
  return table[`${verb} ${name}`] ?? table[name];
}
