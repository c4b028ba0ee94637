import { GROUP } from '../../api/names.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { type Json, member, textAt } from '../../lib/json.ts';

/** A kind of object: its names, its collection in the state folder, and the columns of its listing. */
export interface ListedKind {
  /** Names that users may type; the plural first, then the singular. */
  names: readonly string[];
  collection: string;
  /** For `-o name`: `agent.temper.dev` as kubectl prints it. Records that are not Kubernetes objects have no group. */
  qualifiedName: string;
  headings: readonly string[];
  /** One row of the table, after the name. */
  columns(value: Json, age: (since: string | undefined) => string): string[];
  /** Columns that `-o wide` adds. */
  wide: readonly WideColumn[];
}

interface WideColumn {
  heading: string;
  readonly cell: (value: Json) => string;
}

const column = (heading: string, ...path: string[]): WideColumn => ({
  heading,
  cell: (value) => text(at(value, ...path)),
});
const NAMESPACE = column('NAMESPACE', 'metadata', 'namespace');

const text = (value: Json | undefined, fallback = '-'): string =>
  typeof value === 'string'
    ? value
    : typeof value === 'number' || typeof value === 'boolean'
      ? String(value)
      : fallback;

/** The value at a path of member names; undefined when a member is missing. */
function at(value: Json, ...path: string[]): Json | undefined {
  return path.reduce<Json | undefined>((found, key) => member(found, key), value);
}

const created = (value: Json): string | undefined => {
  const time = at(value, 'metadata', 'creationTimestamp');
  return typeof time === 'string' ? time : undefined;
};

const GROUP_SUFFIX = `.${GROUP}`;

const KINDS: readonly ListedKind[] = [
  {
    names: ['agents', 'agent', 'ag'],
    collection: 'agents',
    qualifiedName: `agent.${GROUP}`,
    wide: [NAMESPACE, column('DESCRIPTION', 'spec', 'description')],
    headings: ['NAME', 'TRUST', 'MODEL', 'POLICY', 'AGE'],
    columns: (value, age) => [
      text(at(value, 'status', 'level')),
      text(at(value, 'spec', 'model', 'primary')),
      text(at(value, 'spec', 'trustPolicyRef', 'name')),
      age(created(value)),
    ],
  },
  {
    names: ['trustpolicies', 'trustpolicy', 'tp', 'policies', 'policy'],
    collection: 'trustpolicies',
    qualifiedName: `trustpolicy.${GROUP}`,
    wide: [NAMESPACE, column('AUTONOMY', 'spec', 'autonomy')],
    headings: ['NAME', 'LEVEL', 'CEILING', 'SUSPENDED', 'AGE'],
    columns: (value, age) => [
      text(at(value, 'spec', 'level', 'initial')),
      text(at(value, 'spec', 'level', 'ceiling')),
      text(at(value, 'spec', 'suspend'), 'false'),
      age(created(value)),
    ],
  },
  {
    names: ['tools', 'tool', 'emergenttools', 'emergenttool', 'et'],
    collection: 'tools',
    qualifiedName: `emergenttool.${GROUP}`,
    wide: [column('FULL-DIGEST', 'spec', 'digest'), column('DESCRIPTION', 'spec', 'artifact', 'description')],
    headings: ['NAME', 'TOOL', 'TIER', 'ACTIVE', 'DIGEST', 'AGE'],
    columns: (value, age) => [
      text(at(value, 'spec', 'artifact', 'name')),
      text(at(value, 'spec', 'tier')),
      text(at(value, 'status', 'active')),
      text(at(value, 'spec', 'digest')).slice(0, 'sha256:'.length + 12),
      age(created(value)),
    ],
  },
  {
    names: ['approvalrequests', 'approvalrequest', 'apr', 'requests', 'request'],
    collection: 'approvalrequests',
    qualifiedName: `approvalrequest.${GROUP}`,
    wide: [
      NAMESPACE,
      column('DECIDED-BY', 'status', 'decidedBy'),
      column('EXPIRES', 'spec', 'expiresAt'),
      column('SUMMARY', 'spec', 'summary'),
      column('ARGUMENTS', 'spec', 'arguments'),
    ],
    headings: ['NAME', 'TYPE', 'TOOL', 'RISK', 'DECISION', 'AGE'],
    columns: (value, age) => [
      text(at(value, 'spec', 'type')),
      text(at(value, 'spec', 'tool')),
      text(at(value, 'spec', 'risk')),
      text(at(value, 'status', 'decision'), ''),
      age(created(value)),
    ],
  },
  {
    names: ['approvals', 'approval', 'apv'],
    collection: 'approvals',
    qualifiedName: `approval.${GROUP}`,
    wide: [NAMESPACE],
    headings: ['NAME', 'DECISION', 'BY', 'REASON', 'AGE'],
    columns: (value, age) => [
      text(at(value, 'spec', 'decision')),
      text(at(value, 'spec', 'approvedBy', 'username')),
      text(at(value, 'spec', 'reason')),
      age(created(value)),
    ],
  },
  {
    names: ['sessions', 'session'],
    collection: 'sessions',
    qualifiedName: 'session',
    wide: [],
    headings: ['NAME', 'AGENT', 'LAST-USED', 'AGE'],
    columns: (value, age) => [
      textAt(value, ['agent']),
      age(textAt(value, ['usedAt'])),
      age(textAt(value, ['openedAt'])),
    ],
  },
  {
    names: ['capabilities', 'capability', 'cap'],
    collection: 'capabilities',
    qualifiedName: `capability.${GROUP}`,
    wide: [],
    headings: ['ID', 'KIND', 'CATEGORY', 'AVAILABLE', 'DESCRIPTION'],
    columns: (value) => [
      textAt(value, ['kind']),
      textAt(value, ['category']),
      text(member(value, 'available')),
      textAt(value, ['description']).slice(0, 60),
    ],
  },
  {
    names: ['rejected', 'attempts', 'attempt'],
    collection: 'rejected',
    qualifiedName: 'rejected',
    wide: [column('MESSAGE', 'message')],
    headings: ['NAME', 'TOOL', 'GATE', 'CLASS', 'CODE', 'AGE'],
    columns: (value, age) => [
      textAt(value, ['tool']),
      textAt(value, ['gate']),
      textAt(value, ['class']),
      textAt(value, ['code']),
      age(textAt(value, ['time'])),
    ],
  },
];

const NOUNS: Readonly<Record<string, string>> = {
  trustpolicies: 'trust policies',
  emergenttools: 'tools',
  approvalrequests: 'approval requests',
  rejected: 'rejected tools',
};

/** What messages call the objects of a collection, such as `approval requests`. */
export function nounOf(collection: string): string {
  return NOUNS[collection] ?? collection;
}

/** The plural of every kind of the state folder. */
export const STATE_KINDS: readonly string[] = KINDS.map(({ names }) => names[0] ?? '');

/** The kind with this name; the API group may follow it. Throws TEMPER_USAGE with the known kinds. */
export function lookupKind(name: string): ListedKind {
  const lower = name.toLowerCase();
  const plain = lower.endsWith(GROUP_SUFFIX) ? lower.slice(0, -GROUP_SUFFIX.length) : lower;
  const found = KINDS.find((kind) => kind.names.includes(plain));
  if (found !== undefined) return found;
  throw new TemperError(
    'TEMPER_USAGE',
    `"${printable(name, 60)}" is not a kind; known: ${STATE_KINDS.join(', ')}, all`,
  );
}
