import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';
import { openAudit } from '../../audit/recorded-trail.ts';
import type { JsonObject } from '../../lib/json.ts';
import { memoryRecordStore } from '../../lib/record-store.ts';
import { aSharedTool, aVerdict, createFakeClock } from '../tempering.testing.ts';
import { createAttestationKey, openEnvelope, sealStatement } from './envelope.ts';
import { assertStatementAbout, toolStatement } from './statement.ts';

const KEY = createAttestationKey(Buffer.alloc(32, 1));
const OTHER = createAttestationKey(Buffer.alloc(32, 2));
const tool = { ...aSharedTool('double'), verdicts: [aVerdict({ reasoning: 'SECRET REASONING' })] };

async function aStatement(): Promise<JsonObject> {
  const chain = await openAudit({ records: memoryRecordStore(), clock: createFakeClock() });
  for (const action of ['tool.accepted', 'tool.called', 'approval.decided'])
    await chain.append({ action, actor: 'user/kim', evidence: 'observed', subject: tool.digest, facts: {} });
  await chain.append({ action: 'tool.accepted', actor: 'a', evidence: 'observed', subject: 'other', facts: {} });
  return toolStatement(tool, await chain.records(), chain.head(), '2026-03-01T09:00:00.000Z');
}

const verified = (text: string, key = KEY.publicPem, digest: string = tool.digest): void =>
  assertStatementAbout(openEnvelope(text, key), digest);

describe('the attestation of a tool', () => {
  it('a statement names the digest, the verdicts without their words, the life of the tool and the head of the chain', async () => {
    const statement = await aStatement();
    assert.deepEqual(openEnvelope(sealStatement(statement, KEY), KEY.publicPem), statement);
    const { predicate } = statement as { predicate: { provenance: { head: { seq: number }; records: JsonObject[] } } };
    assert.equal(predicate.provenance.head.seq, 4);
    assert.deepEqual(
      predicate.provenance.records.map(({ action }) => action),
      ['tool.accepted', 'approval.decided'],
    );
    assert.ok(!JSON.stringify(statement).includes('SECRET'));
    verified(sealStatement(statement, KEY));
  });

  type Envelope = { payloadType: string; payload: string; signatures: { keyid: string; sig: string }[] };
  const edited = (edit: (envelope: Envelope) => unknown) => async (): Promise<string> => {
    const envelope = JSON.parse(sealStatement(await aStatement(), KEY)) as Envelope;
    return JSON.stringify(edit(envelope) ?? envelope);
  };
  const resealed = (changes: JsonObject) => async (): Promise<string> =>
    sealStatement({ ...(await aStatement()), ...changes }, KEY);
  const forged: Record<string, () => Promise<string>> = {
    'an envelope of another key': async () => sealStatement(await aStatement(), OTHER),
    'an envelope of another key under the id of the trusted one': edited((envelope) => {
      const signature = JSON.parse(sealStatement({}, OTHER)) as Envelope;
      envelope.signatures = [{ keyid: KEY.id, sig: signature.signatures[0]?.sig ?? '' }];
    }),
    'the signature of another statement': edited((envelope) => {
      envelope.signatures = (JSON.parse(sealStatement({}, KEY)) as Envelope).signatures;
    }),
    'an edited payload': edited((envelope) => {
      envelope.payload = Buffer.from(`${Buffer.from(envelope.payload, 'base64').toString()} `).toString('base64');
    }),
    'another payload type': edited((envelope) => ({ ...envelope, payloadType: 'application/json' })),
    'no signature': edited((envelope) => ({ ...envelope, signatures: [] })),
    'signatures without end': edited((envelope) => ({
      ...envelope,
      signatures: Array(11).fill(envelope.signatures[0]),
    })),
    'a signature that is no object': edited((envelope) => ({ ...envelope, signatures: [1, null, 'x'] })),
    'a signature of another form': edited((envelope) => ({ ...envelope, signatures: [{ sig: '!' }] })),
    'a payload that is not base64': edited((envelope) => ({ ...envelope, payload: '%%%' })),
    'a list': async () => '[]',
    'a text that is not JSON': async () => 'envelope',
    'a text of great length': async () => ' '.repeat(600_000),
    'a text of great depth': async () => '['.repeat(5_000),
    'a statement of another type': resealed({ _type: 'https://in-toto.io/Statement/v0.1' }),
    'a statement of another predicate': resealed({ predicateType: 'https://slsa.dev/provenance/v1' }),
    'a statement without a subject': resealed({ subject: [] }),
    'a statement about two tools': resealed({ subject: [{}, {}] }),
    'a statement about another tool': resealed({ subject: [{ name: 'double', digest: { sha256: '0'.repeat(64) } }] }),
    'a statement with a shortened digest': resealed({
      subject: [{ name: 'double', digest: { sha256: tool.digest.slice(7, 20) } }],
    }),
  };
  for (const [what, make] of Object.entries(forged)) {
    it(`an importer refuses ${what}`, async () => {
      const text = await make();
      assert.throws(() => verified(text), { code: 'TEMPER_ATTESTATION_INVALID' });
    });
  }
  it('an importer refuses a trusted key that is no public Ed25519 key', async () => {
    const text = sealStatement(await aStatement(), KEY);
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 });
    const own = generateKeyPairSync('ed25519');
    const keys = [
      '',
      'key',
      rsa.publicKey.export({ type: 'spki', format: 'pem' }),
      own.privateKey.export({ type: 'pkcs8', format: 'pem' }),
    ];
    for (const key of keys) assert.throws(() => verified(text, key), { code: 'TEMPER_ATTESTATION_INVALID' });
  });
});
