import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { knownHeadText, parseKnownHead } from '../../../audit/known-head.ts';
import { headVerifier } from '../../../audit/signed-heads.ts';
import { type SignedHead, signHead } from '../../../audit/stream-chain.ts';
import { auditPage } from '../../../gateway/users/audit.ts';
import type { Json } from '../../../lib/json.ts';
import { headKeysOf, rotateAuditKeys } from '../../../operator/provenance/audit-key.ts';
import {
  aSignedStream,
  DAY_MS,
  fixture,
  FORGERIES,
  KEYS,
  SIGNAL,
  START,
} from '../../../operator/provenance/signed-stream.testing.ts';
import { aTerminal } from '../../io.testing.ts';
import { assertSigned, readHeadFile } from './head-file.ts';
import { verifyCluster } from './verify-chain.ts';

type Signed = Awaited<ReturnType<typeof aSignedStream>>;

async function verdictOn({ stream, heads, time }: Signed, known: SignedHead | undefined) {
  const read = async (after: number) => {
    const { page } = await auditPage(stream, 'team-a', { after, limit: 7 });
    return JSON.parse(JSON.stringify(page)) as Json;
  };
  const verifier = headVerifier(KEYS.publicKeys);
  const now = new Date(time.ms);
  return verifyCluster({ heads: heads.heads ?? [], verifier, now, known }, read, () => undefined);
}

/** The head of the record, as the leader signed it. */
function headOf({ heads }: Signed, sequence: number): SignedHead {
  const found = heads.heads?.find((head) => head.sequence === sequence);
  assert.ok(found);
  return structuredClone(found);
}

/** Another installation with the same signing key: NATS store and ConfigMap were replaced together, from record `after` on. */
async function aReplacement(after = 0, count = 40): Promise<Signed> {
  const made = fixture();
  const chain = made.leader();
  if (after > 0) {
    made.stream.add(after);
    made.stream.records = [];
  }
  for (let day = 0; day < 3; day += 1) {
    assert.ok((await chain.round(SIGNAL)).intact);
    made.stream.add(day === 0 ? count - 1 : 1, 'team-b');
    made.time.ms += DAY_MS;
  }
  assert.ok((await chain.round(SIGNAL)).intact);
  return made;
}

describe('a head that was kept outside of the cluster', () => {
  it('a kept head lies on the chain, whether the ConfigMap still has it or not', async () => {
    const made = await aSignedStream();
    for (const sequence of [10, 20, 30]) {
      const known = headOf(made, sequence);
      const stored = made.heads.heads ?? [];
      for (const heads of [stored, stored.filter((head) => head.sequence !== sequence || sequence === 30)]) {
        made.heads.heads = heads;
        const verdict = await verdictOn(made, known);
        assert.ok(verdict.ok && verdict.known === 'verified', String(sequence));
      }
      made.heads.heads = stored;
    }
  });

  it('a kept head is the start of the comparison when the records before it have passed their age', async () => {
    const made = await aSignedStream();
    const known = headOf(made, 20);
    made.time.ms = START + 91 * DAY_MS;
    made.stream.records = made.stream.records.slice(20);
    made.heads.heads = [headOf(made, 30)];
    const verdict = await verdictOn(made, known);
    assert.ok(verdict.ok);
    assert.deepEqual([verdict.known, verdict.from], ['verified', 21]);
    const forged = { ...known, ...signHead({ ...known, digest: 'sha256:0' }, known, headKeysOf(KEYS)) };
    assert.equal((await verdictOn(made, forged)).ok, false);
  });

  it('a kept head detects a cluster whose NATS store and ConfigMap were both replaced, which nothing else does', async () => {
    const known = headOf(await aSignedStream(), 20);
    for (const [after, count] of [
      [0, 40],
      [0, 20],
      [0, 10],
      [5, 40],
      [20, 40],
      [25, 40],
      [100, 10],
    ]) {
      const replaced = await aReplacement(after, count);
      assert.ok((await verdictOn(replaced, undefined)).ok, `${after} ${count}`);
      assert.equal((await verdictOn(replaced, known)).ok, false, `${after} ${count}`);
    }
  });

  it('a kept head shows that the records up to it were removed before their age, although later ones continue its chain', async () => {
    const made = await aSignedStream();
    const known = headOf(made, 30);
    made.stream.records = [];
    made.heads.heads = [known];
    made.stream.add(10, 'team-b');
    assert.ok((await made.leader().round(SIGNAL)).intact);
    made.heads.heads = [headOf(made, 40)];
    assert.ok((await verdictOn(made, undefined)).ok);
    assert.equal((await verdictOn(made, known)).ok, false);
  });

  for (const [what, forge] of Object.entries(FORGERIES)) {
    it(`a kept head does not hide ${what}`, async () => {
      for (const sequence of [10, 30]) {
        const made = await aSignedStream();
        const known = headOf(made, sequence);
        forge(made);
        assert.equal((await verdictOn(made, known)).ok, false, String(sequence));
      }
    });
  }

  it('a kept head is reported as expired, and not as verified, when it is older than the kept records', async () => {
    const made = await aSignedStream();
    const known = headOf(made, 10);
    made.time.ms = START + 92 * DAY_MS;
    made.stream.records = made.stream.records.slice(20);
    const verdict = await verdictOn(made, known);
    assert.ok(verdict.ok);
    assert.equal(verdict.known, 'expired');
  });

  it('a kept head must be signed with one of the trusted keys', async () => {
    const made = await aSignedStream();
    const known = headOf(made, 20);
    const other = rotateAuditKeys(undefined, new Date(START));
    assertSigned(known, headVerifier(KEYS.publicKeys), undefined);
    for (const [head, keys] of [
      [known, other.publicKeys],
      [{ ...known, digest: 'sha256:0' }, KEYS.publicKeys],
      [{ ...known, time: '2026-01-01T00:00:00.000Z' }, KEYS.publicKeys],
      [{ ...known, sequence: 21 }, KEYS.publicKeys],
    ] as const)
      assert.throws(() => assertSigned(head, headVerifier(keys), 'keys.pem'), {
        code: 'TEMPER_AUDIT_CHAIN_INVALID',
        message: /none of --keys keys\.pem signed the head/,
      });
  });

  it('a kept head is read from one line, and a file of another form is refused by its name', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'temper-head-'));
    try {
      const known = headOf(await aSignedStream(), 20);
      assert.deepEqual(parseKnownHead(knownHeadText(known)), known);
      const file = join(folder, 'audit-head.jsonl');
      const reading = async (text: string) => {
        await writeFile(file, text);
        return readHeadFile(file, aTerminal());
      };
      assert.deepEqual(await reading(knownHeadText(known)), known);
      for (const [text, message] of [
        ['{"seq":4,"digest":"sha256:0"}', /is the checkpoint of a state folder/],
        ['[]', /has no signed head/],
        ['{"sequence":"20"}', /has no signed head/],
        ['head', /has no signed head/],
      ] as const)
        await assert.rejects(reading(text), { code: 'TEMPER_USAGE', message });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
