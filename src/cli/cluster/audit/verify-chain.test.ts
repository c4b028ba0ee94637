import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseKnownHead } from '../../../audit/known-head.ts';
import { headVerifier } from '../../../audit/signed-heads.ts';
import { auditPage } from '../../../gateway/users/audit.ts';
import type { Json } from '../../../lib/json.ts';
import { aSignedStream, FORGERIES, KEYS } from '../../../operator/provenance/signed-stream.testing.ts';
import type { PagedRecord } from './audit-pages.ts';
import { aTerminal } from '../../io.testing.ts';
import { showVerdict } from './show-verdict.ts';
import { verifyCluster } from './verify-chain.ts';

type Signed = Awaited<ReturnType<typeof aSignedStream>>;

/** What a user of team-a gets from a gateway, in small pages. */
async function verified({ stream, heads, time }: Signed, change: (page: Json) => Json = (page) => page) {
  const own: PagedRecord[] = [];
  const pages: Json[] = [];
  const read = async (after: number): Promise<Json> => {
    const { page } = await auditPage(stream, 'team-a', { after, limit: 7 });
    const sent = change(JSON.parse(JSON.stringify(page)) as Json);
    pages.push(sent);
    return sent;
  };
  const signed = { heads: heads.heads ?? [], verifier: headVerifier(KEYS.publicKeys), now: new Date(time.ms) };
  const verdict = await verifyCluster(signed, read, (record) => own.push(record));
  return { verdict, own, pages };
}

describe('the provenance chain of a cluster, verified by a user of a namespace', () => {
  it('a user verifies the whole chain and reads the records of the own namespace only', async () => {
    const made = await aSignedStream();
    const { verdict, own, pages } = await verified(made);
    assert.ok(verdict.ok);
    assert.deepEqual([verdict.records, verdict.from, verdict.through, verdict.signed.sequence], [30, 1, 30, 30]);
    assert.deepEqual(
      own.map(({ seq }) => seq),
      [...Array(10).keys(), ...Array(10).keys()].map((n, i) => n + (i < 10 ? 1 : 21)),
    );
    assert.doesNotMatch(JSON.stringify(pages), /team-b/);
  });

  for (const [what, forge] of Object.entries(FORGERIES)) {
    it(`a user detects ${what}`, async () => {
      const made = await aSignedStream();
      forge(made);
      const { verdict } = await verified(made);
      assert.equal(verdict.ok, false);
    });
  }

  it('the verdict names what only the gateway states, and the option that proves it, unless a kept head was given', async () => {
    const made = await aSignedStream();
    const { verdict } = await verified(made);
    assert.ok(verdict.ok);
    const printedFor = (output: 'text' | 'json', known?: 'verified') => {
      const io = aTerminal();
      const about = { output, isLife: false, location: 'prod/team-a' };
      showVerdict({ ...verdict, ...(known === undefined ? {} : { known }) }, 20, about, io);
      return io.printed();
    };
    assert.match(printedFor('text'), /^note: the gateway states where the records begin, .*; --head FILE proves /m);
    assert.doesNotMatch(printedFor('text', 'verified'), /gateway/);
    const json = JSON.parse(printedFor('json')) as { boundsStatedBy?: string; head: Json };
    assert.equal(json.boundsStatedBy, 'gateway');
    assert.deepEqual(parseKnownHead(JSON.stringify(json.head)), made.heads.heads?.at(-1));
    assert.doesNotMatch(printedFor('json', 'verified'), /boundsStatedBy/);
  });

  it('a gateway that edits, hides, repeats or invents a record is detected, and one that sends no page is an error', async () => {
    const edits: Record<string, (text: string) => string> = {
      'an edited record': (text) => text.replace('tool.called', 'tool.promoted'),
      'another time': (text) => text.replace(/"time":"2026-11/, '"time":"2027-11'),
      'a time that is none': (text) => text.replace(/"time":"[^"]*"/, '"time":"then"'),
      'another leaf': (text) => text.replace(/"leaf":"sha256:./, '"leaf":"sha256:_'),
      'a record without its digest': (text) => text.replace(/"leaf":"[^"]*"/, '"leaf":""'),
      'a record less': (text) => text.replace(/\{"seq":9,.*?\}(\})?,/, ''),
      'an end that is cut off': (text) => text.replace('"lastSequence":30', '"lastSequence":25'),
      'a start that is cut off': (text) => text.replace('"firstSequence":1,', '"firstSequence":12,'),
      'empty pages': (text) => text.replace(/"links":\[.*\],/, '"links":[],'),
    };
    for (const [what, edit] of Object.entries(edits)) {
      const made = await aSignedStream();
      const { verdict } = await verified(made, (page) => JSON.parse(edit(JSON.stringify(page))) as Json);
      assert.equal(verdict.ok, false, what);
    }
    for (const page of [null, [], { links: [{ seq: 'one' }] }, { links: [{ seq: 1, record: { data: 1 } }] }])
      await assert.rejects(
        verified(await aSignedStream(), () => page as Json),
        {
          code: 'TEMPER_GATEWAY_UNREACHABLE',
        },
      );
  });
});
