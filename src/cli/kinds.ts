import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import { type Json, member, textAt } from '../lib/json.ts';

/** A kind of object: its names, its collection in the state folder, and the columns of its listing. */
export interface ListedKind {
  names: readonly string[];
  collection: string;
  headings: readonly string[];
  /** One row of the table, after the name. */
  columns(value: Json, age: (since: string | undefined) => string): string[];
}

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

const KINDS: readonly ListedKind[] = [
  {
    names: ['agents', 'agent', 'ag'],
    collection: 'agents',
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

/** The kind with this name. Throws TEMPER_USAGE with the known kinds. */
export function lookupKind(name: string): ListedKind {
  const found = KINDS.find((kind) => kind.names.includes(name.toLowerCase()));
  if (found !== undefined) return found;
  const known = KINDS.map((kind) => kind.names[0]).join(', ');
  throw new TemperError('TEMPER_USAGE', `"${printable(name, 60)}" is not a kind; known: ${known}`);
}
