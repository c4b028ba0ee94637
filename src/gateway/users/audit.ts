import { Type } from 'typebox';
import { linkOf, type StreamRecord } from '../../audit/stream-chain.ts';
import { AuditPage, AuditQuery, MAX_AUDIT_BYTES, MAX_AUDIT_LINKS } from '../../gateway-api/provenance/audit-schemas.ts';
import type { AuditStream } from '../../nats/audit-stream.ts';
import { subjects } from '../../nats/jetstream/names.ts';
import type { GatewayDeps } from '../deps.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, USER_SECURITY } from '../http/schemas.ts';
import { Namespace, NAMESPACE_PATH } from './messages.ts';

/** The provenance chain for users: the records of their namespace, and the digests alone of all others. */
export function userAuditRoutes(server: GatewayServer, deps: Pick<GatewayDeps, 'auditStream'>): void {
  server.get(
    `${NAMESPACE_PATH}/audit`,
    {
      config: { access: 'user', largeResponse: true },
      schema: {
        ...USER_SECURITY,
        summary: 'A page of the provenance chain',
        params: Type.Object({ namespace: Namespace }),
        querystring: AuditQuery,
        response: { 200: AuditPage, ...ERROR_RESPONSES },
      },
    },
    async (request) => {
      const { page, bytes } = await auditPage(deps.auditStream, request.params.namespace, request.query);
      request.holdResponse(bytes);
      return page;
    },
  );
}

/** At most `limit` links, and records of about half a MiB. */
export async function auditPage(
  stream: AuditStream,
  namespace: string,
  { after = 0, limit = MAX_AUDIT_LINKS }: { after?: number; limit?: number },
): Promise<{ page: AuditPage; bytes: number }> {
  const bounds = await stream.bounds();
  const from = Math.max(after + 1, bounds.firstSequence);
  const through = Math.min(bounds.lastSequence, from + limit - 1);
  const { links, bytes } = await linksOf(stream.read(from, through), subjects.audit(namespace));
  return { page: { links, ...bounds }, bytes };
}

async function linksOf(records: AsyncIterable<StreamRecord>, own: string) {
  const links: AuditPage['links'] = [];
  let bytes = 0;
  for await (const record of records) {
    const { seq, leaf } = linkOf(record);
    const data = record.subject === own ? textOf(record.data) : undefined;
    bytes += data?.length ?? leaf.length;
    if (bytes > MAX_AUDIT_BYTES && links.length > 0) break;
    const { subject, time } = record;
    links.push(data === undefined ? { seq, leaf } : { seq, record: { subject, time: time.toISOString(), data } });
  }
  return { links, bytes };
}

/** Undefined for bytes that no writer of records sends; their digest is shown instead. */
function textOf(data: Uint8Array): string | undefined {
  const text = Buffer.from(data).toString('utf8');
  return Buffer.from(text).equals(data) ? text : undefined;
}
