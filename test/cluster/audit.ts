import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** One call of the API server, as its audit log has it. */
export interface AuditEntry {
  /** `create`, `update`, `patch`, `delete`, `deletecollection`, `get`, `list` or `watch`. */
  readonly verb: string;
  readonly user: string;
  readonly userAgent: string;
  /** `<plural>.<group>`, the plural alone in the core group. */
  readonly resource: string;
  /** `status`, `binding`, … or ''. */
  readonly subresource: string;
  readonly namespace: string;
  /** Empty in the entry of a create with a generated name. */
  readonly name: string;
  /** The HTTP status. */
  readonly code: number;
  /** Whether it asked for nothing to be stored. */
  readonly dryRun: boolean;
}

interface Event {
  verb: string;
  user: { username?: string };
  userAgent?: string;
  requestURI?: string;
  objectRef?: { resource?: string; apiGroup?: string; subresource?: string; namespace?: string; name?: string };
  responseStatus?: { code?: number };
}

/** Every call is kept once, when it is over (a watch: when it ends); without bodies. */
const POLICY = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived', 'ResponseStarted'],
  rules: [{ level: 'Metadata' }],
};

/** The flags of an API server that keeps `audit.log` in the folder. Writes the policy there. */
export async function auditFlags(folder: string): Promise<string[]> {
  const policy = join(folder, 'audit-policy.json');
  await writeFile(policy, JSON.stringify(POLICY));
  // Of its own accord it would begin another file after 100 MiB, which is thousands of agents.
  const size = '--audit-log-maxsize=100000';
  return [`--audit-policy-file=${policy}`, `--audit-log-path=${join(folder, 'audit.log')}`, size];
}

/** The calls so far that named a resource, oldest first. A call is there by the time its caller has the answer. */
export async function readAudit(folder: string): Promise<AuditEntry[]> {
  const text = await readFile(join(folder, 'audit.log'), 'utf8');
  const complete = text.slice(0, text.lastIndexOf('\n') + 1);
  return complete.split('\n').flatMap((line) => (line === '' ? [] : entryOf(JSON.parse(line) as Event)));
}

function entryOf({ verb, user, userAgent, requestURI, objectRef, responseStatus }: Event): AuditEntry[] {
  if (objectRef?.resource === undefined) return [];
  const { resource, apiGroup } = objectRef;
  const entry = {
    verb,
    user: user.username ?? '',
    userAgent: userAgent ?? '',
    resource: apiGroup === undefined ? resource : `${resource}.${apiGroup}`,
    subresource: objectRef.subresource ?? '',
    namespace: objectRef.namespace ?? '',
    name: objectRef.name ?? '',
    code: responseStatus?.code ?? 0,
    dryRun: /[?&]dryRun=/.test(requestURI ?? ''),
  };
  return [entry];
}

/** Whether it was a call that may change what is stored, or would but for `dryRun`. */
export function isWrite({ verb }: AuditEntry): boolean {
  return ['create', 'update', 'patch', 'delete', 'deletecollection'].includes(verb);
}
