import { linkOf, type StreamBounds, type StreamLink } from '../../../audit/stream-chain.ts';
import type { AuditPage } from '../../../gateway-api/user-api.ts';
import { isJsonObject, type Json } from '../../../lib/json.ts';
import { TemperError } from '../../../lib/errors.ts';

/** A record of the namespace as its page has it. */
export interface PagedRecord {
  readonly seq: number;
  readonly time: string;
  readonly data: string;
}

/** Reads one page of the provenance chain. */
export type ReadPage = (after: number) => Promise<Json>;

export async function readBounds(read: ReadPage): Promise<StreamBounds> {
  const { firstSequence, lastSequence, maxAgeMs } = pageIn(await read(0));
  return { firstSequence, lastSequence, maxAgeMs };
}

/** The links of the records after one sequence up to another. `onRecord` gets each record of the namespace; its digest is computed here. */
export async function* readLinks(
  read: ReadPage,
  { after, through }: { after: number; through: number },
  onRecord: (record: PagedRecord) => void,
): AsyncGenerator<StreamLink> {
  let last = after;
  while (last < through) {
    const { links } = pageIn(await read(last));
    const next = links.filter(({ seq }) => seq > last && seq <= through);
    // The records up to here are missing; the comparison with the heads says so.
    if (next.length === 0) return;
    for (const link of next) {
      yield linkIn(link, onRecord);
      last = link.seq;
    }
  }
}

function linkIn(
  { seq, leaf, record }: AuditPage['links'][number],
  onRecord: (record: PagedRecord) => void,
): StreamLink {
  if (record === undefined) return { seq, leaf: leaf ?? '' };
  const { subject, time, data } = record;
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return { seq, leaf: '' };
  onRecord({ seq, time, data });
  return linkOf({ seq, subject, time: at, data: Buffer.from(data) });
}

/** The gateway may be compromised: a page of another form is an error, and its content is compared with the signed heads. */
function pageIn(value: Json): AuditPage {
  const page = isJsonObject(value) ? (value as unknown as Partial<AuditPage>) : {};
  const { links, firstSequence, lastSequence, maxAgeMs } = page;
  const isPage = Array.isArray(links) && links.every(isLink);
  if (isPage && [firstSequence, lastSequence, maxAgeMs].every(Number.isSafeInteger)) return page as AuditPage;
  throw new TemperError('TEMPER_GATEWAY_UNREACHABLE', 'the gateway answered with no page of the provenance chain');
}

function isLink(value: unknown): boolean {
  const link = value as Json;
  if (!isJsonObject(link) || !Number.isSafeInteger(link['seq'])) return false;
  const { leaf, record } = link;
  if (record === undefined) return typeof leaf === 'string';
  return isJsonObject(record) && ['subject', 'time', 'data'].every((member) => typeof record[member] === 'string');
}
