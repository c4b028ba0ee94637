import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** One request to the API server, from its audit log. */
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
  /** Empty for a create with a generated name. */
  readonly name: string;
  /** The HTTP status. */
  readonly code: number;
  /** Whether the request has `dryRun`. */
  readonly dryRun: boolean;
}

interface AuditEvent {
  verb: string;
  user: { username?: string };
  userAgent?: string;
  requestURI?: string;
  objectRef?: { resource?: string; apiGroup?: string; subresource?: string; namespace?: string; name?: string };
  responseStatus?: { code?: number };
}

/** Records every request once, without bodies, when it completes (a watch: when it ends). */
const POLICY = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived', 'ResponseStarted'],
  rules: [{ level: 'Metadata' }],
};

/** The flags of an API server that writes `audit.log` into the folder. Writes the audit policy there. */
export async function auditFlags(folder: string): Promise<string[]> {
  const policy = join(folder, 'audit-policy.json');
  await writeFile(policy, JSON.stringify(POLICY));
  // By default the API server rotates the file after 100 MiB, which is the volume of some thousand agents.
  const size = '--audit-log-maxsize=100000';
  return [`--audit-policy-file=${policy}`, `--audit-log-path=${join(folder, 'audit.log')}`, size];
}

/** All resource requests so far, oldest first. A request is included as soon as its client has the response. */
export async function readAudit(folder: string): Promise<AuditEntry[]> {
  const text = await readFile(join(folder, 'audit.log'), 'utf8');
  const complete = text.slice(0, text.lastIndexOf('\n') + 1);
  return complete.split('\n').flatMap((line) => (line === '' ? [] : entryOf(JSON.parse(line) as AuditEvent)));
}

function entryOf({ verb, user, userAgent, requestURI, objectRef, responseStatus }: AuditEvent): AuditEntry[] {
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

/** Whether the verb is a write. Dry runs count too. */
export function isWrite({ verb }: AuditEntry): boolean {
  return ['create', 'update', 'patch', 'delete', 'deletecollection'].includes(verb);
}
