import { printable } from '../../lib/printable.ts';
import { gitFailure } from '../failure.ts';
import { FLUSH, lineOf, packet, packetsOf } from './pkt-line.ts';
import { sideBandOf } from './side-band.ts';
import { assertObjectFormat } from './upload-pack.ts';

/** What a server offers for writing. */
export interface ReceivePackCapabilities {
  readonly sideBand: boolean;
  readonly objectFormat: boolean;
}

export interface RefUpdate {
  readonly ref: string;
  /** The id that the branch must still have. */
  readonly before: string;
  readonly after: string;
}

const MAX_REASON = 200;

/** The answer to `info/refs?service=git-receive-pack`. Its first line has the capabilities; the refs after it are not read. */
export function parseReceivePack(body: Buffer): ReceivePackCapabilities {
  for (const { payload } of packetsOf(body)) {
    const line = payload === undefined ? '' : lineOf(payload);
    if (payload === undefined || line.startsWith('# service=')) continue;
    const capabilities = line.slice(line.indexOf('\0') + 1).split(' ');
    assertObjectFormat(capabilities);
    if (!line.includes('\0') || !capabilities.includes('report-status')) break;
    return {
      sideBand: capabilities.includes('side-band-64k'),
      objectFormat: capabilities.includes('object-format=sha1'),
    };
  }
  throw gitFailure('the server does not report what becomes of a push, so Temper does not push');
}

/** Moves one branch from the id that was read, and only from it. */
export function pushRequest({ ref, before, after }: RefUpdate, server: ReceivePackCapabilities, pack: Buffer): Buffer {
  const capabilities = [
    'report-status',
    ...(server.sideBand ? ['side-band-64k'] : []),
    ...(server.objectFormat ? ['object-format=sha1'] : []),
    'agent=temper',
  ];
  return Buffer.concat([packet(`${before} ${after} ${ref}\0${capabilities.join(' ')}`), FLUSH, pack]);
}

/** Undefined when the server moved the branch, otherwise why not, in one printable line. Throws for an answer that says neither. */
export function refusalIn(body: Buffer, ref: string, { sideBand }: ReceivePackCapabilities): string | undefined {
  const { data, said } = sideBand ? sideBandOf(packetsOf(body)) : { data: body, said: '' };
  const [unpack = '', status = '', ...more] = linesOf(data);
  if (unpack === 'unpack ok' && status === `ok ${ref}` && more.length === 0) return undefined;
  const refused = status.startsWith(`ng ${ref} `) ? status.slice(ref.length + 4) : '';
  const reason = unpack === 'unpack ok' ? refused : (/^unpack (.+)$/.exec(unpack)?.[1] ?? '');
  if (reason === '') throw gitFailure('the server did not report what became of the push; the next look finds out');
  return `${printable(reason, MAX_REASON)}${said === '' ? '' : ` (${said})`}`;
}

function linesOf(report: Buffer): string[] {
  const lines: string[] = [];
  for (const { payload } of packetsOf(report)) {
    if (payload === undefined) break;
    lines.push(lineOf(payload));
  }
  return lines;
}
