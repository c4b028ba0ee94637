import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../../test/support/stubs.ts';
import { openAudit } from '../../../audit/recorded-trail.ts';
import { systemClock } from '../../../lib/clock.ts';
import { fileRecordStore } from '../../../lib/file-record-store.ts';
import { pushTool } from '../../../oci/push.ts';
import { clientFor, type FakeRegistry, REPOSITORY, startFakeRegistry } from '../../../oci/registry.testing.ts';
import { stateKeys } from '../../../standalone/trust/state-key.ts';
import { prepareStateFolder } from '../../../standalone/trust/trust.ts';
import { createAttestationKey } from '../../../tempering/attestation/envelope.ts';
import { exportPackage } from '../../../tempering/packages/packages.ts';
import { openRegistry } from '../../../tempering/registry/registry.ts';
import { aCaller, anAcceptance, anArtifact, aSharedTool, aSourceStore } from '../../../tempering/tempering.testing.ts';
import { aTerminal } from '../../io.testing.ts';
import { attestationKey } from '../attestation.ts';
import { toolVerify } from '../tool-verify.ts';
import { toolPull, type ToolPullOptions } from './tool-pull.ts';
import { toolPush, type ToolPushOptions } from './tool-push.ts';

let folder: string;
let registry: FakeRegistry;

function anIo() {
  return { ...aTerminal(), cwd: folder, environment: { XDG_CONFIG_HOME: join(folder, 'config'), HOME: folder } };
}

async function pushed(changes: Partial<ToolPushOptions> = {}): Promise<string> {
  const io = anIo();
  const reference = `oci://localhost:${registry.port}/${REPOSITORY}:v1`;
  const options: ToolPushOptions = { tool: 'double', state: 'state', reference, attestation: true, output: 'text' };
  assert.equal(await toolPush({ ...options, ...changes }, io), 0);
  return io.printed();
}

async function pulled(changes: Partial<ToolPullOptions> = {}): Promise<string> {
  const io = anIo();
  const reference = `oci://localhost:${registry.port}/${REPOSITORY}:v1`;
  assert.equal(await toolPull({ reference, output: 'text', ...changes }, io), 0);
  return io.printed();
}

/** The files that a pull has left behind. */
async function files(): Promise<string[]> {
  const names = await readdir(folder);
  return names.filter((name) => name.startsWith('out'));
}

type Hostile = (request: IncomingMessage, response: ServerResponse) => void;

const refuse =
  (status: number): Hostile =>
  (_request, response) =>
    response.writeHead(status).end('{"errors":[]}');
const page: Hostile = (_request, response) => response.end('<html>Sign in</html>');
const truncate: Hostile = (_request, response) => {
  response.writeHead(200, { 'content-length': '4096' });
  response.write('{"schemaVersion":2,', () => response.destroy());
};

describe('temper tool push and pull', () => {
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-oci-verbs-'));
    registry = await startFakeRegistry();
    const keys = stateKeys(join(folder, 'config/temper'));
    await prepareStateFolder(join(folder, 'state'), keys);
    const records = fileRecordStore(join(folder, 'state'));
    const audit = await openAudit({ records, clock: systemClock, key: await keys.findOrCreate() });
    const sources = await aSourceStore(records);
    const tools = await openRegistry({ records, audit, clock: systemClock, builtIn: new Set(), sources });
    const withheld = anAcceptance(anArtifact('withheld'));
    for (const accepted of [anAcceptance(), withheld]) await tools.register(accepted, aCaller());
    const owner = { agent: 'analyst', namespace: 'team-a' };
    const limits = { sessionTools: 10, agentTools: 10 };
    const order = { digest: withheld.digest, owner, to: 'Agent', verdicts: [], actor: 'system', limits } as const;
    await tools.promote({ ...order, sourceWithheld: true });
    await audit.flush();
    const io = anIo();
    await attestationKey(io);
    await writeFile(join(folder, 'key.pem'), io.printed());
    await writeFile(join(folder, 'other.pem'), createAttestationKey(Buffer.alloc(32, 7)).publicPem);
  });
  after(async () => {
    await registry[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });
  afterEach(async () => {
    for (const name of await files()) await rm(join(folder, name));
    registry.hostile = () => false;
    registry.manifests.clear();
  });

  it('a tool is pushed with its attestation and pulled by its key', async () => {
    assert.match(await pushed(), /with its attestation\n$/);
    const trusted = { file: 'out.json', attestation: 'out.attestation.json', trustedKey: 'key.pem' };
    assert.match(await pulled(trusted), /attested by the trusted key\n$/);
    assert.deepEqual((await files()).sort(), ['out.attestation.json', 'out.json']);
    const printed = await pulled({ ...trusted, output: 'json' });
    assert.equal((JSON.parse(printed) as { verified: boolean }).verified, true);
    assert.equal(await pulled(), await readFile(join(folder, 'out.json'), 'utf8'));
  });

  it('a pull by another key, and one without an attestation, write nothing', async () => {
    await pushed();
    const other = { file: 'out.json', attestation: 'out.attestation.json', trustedKey: 'other.pem' };
    await assert.rejects(pulled(other), { code: 'TEMPER_ATTESTATION_INVALID' });
    registry.manifests.clear();
    await pushed({ attestation: false });
    await assert.rejects(pulled({ ...other, trustedKey: 'key.pem' }), {
      code: 'TEMPER_ATTESTATION_INVALID',
      message: /no attestation/,
    });
    await assert.rejects(pulled({ file: 'out.json', attestation: 'out.x' }), { code: 'TEMPER_NOT_FOUND' });
    assert.deepEqual(await files(), []);
  });

  it('a tool without its source, a reference without a tag, and a report about no file are refused', async () => {
    await assert.rejects(pushed({ tool: 'withheld' }), { code: 'TEMPER_PACKAGE_INVALID' });
    const byDigest = `oci://localhost:${registry.port}/a@sha256:${'0'.repeat(64)}`;
    await assert.rejects(pushed({ reference: byDigest }), { code: 'TEMPER_USAGE', message: /must name a tag/ });
    await assert.rejects(pulled({ output: 'json' }), { code: 'TEMPER_USAGE', message: /--file/ });
    assert.equal(registry.manifests.size, 0);
  });

  /** Pushes any text as the package of a tool. */
  async function planted(text: string, title = 'double'): Promise<void> {
    const { client, reference } = clientFor(registry);
    const op = { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + 20_000, key: 'test' };
    await pushTool(client, reference, { package: text, name: title, toolDigest: 'x', created: 'now' }, op);
  }
  const packageText = (): string =>
    exportPackage(aSharedTool('double'), { form: 'json', exportedAt: '2026-03-01T09:00:00.000Z' });

  it('a pull refuses a package that is none, and one whose content has another digest', async () => {
    for (const text of ['{}', '{', packageText().replace('Doubles', 'Halves')]) {
      await planted(text);
      await assert.rejects(pulled({ file: 'out.json' }), { code: 'TEMPER_PACKAGE_INVALID' });
    }
    assert.deepEqual(await files(), []);
  });

  it('a title never becomes a path, and no byte of a package controls the terminal', async () => {
    await planted(packageText().replace('"exportedAt"', '"note": "\u009b2J\u202e", "exportedAt"'), '../../out');
    const text = await pulled();
    assert.doesNotMatch(text, /[^\n\x20-\x7e]/);
    await pulled({ file: 'out.json' });
    assert.deepEqual(await files(), ['out.json']);
  });

  /** What a registry may do, and what the command prints: the cause and the next step. */
  const refusals: readonly (readonly [what: string, hostile: Hostile, code: string, message: RegExp])[] = [
    [
      'is away',
      (_request, response) => response.destroy(),
      'TEMPER_OCI_FAILED',
      /check the host and the network, then repeat/,
    ],
    ['answers 401', refuse(401), 'TEMPER_OCI_UNAUTHORIZED', /[Bb]asic|challenge|credential/],
    ['answers 403', refuse(403), 'TEMPER_OCI_UNAUTHORIZED', /answered 403.*check the credential/],
    ['answers 404', refuse(404), 'TEMPER_NOT_FOUND', /no manifest v1/],
    ['answers 400', refuse(400), 'TEMPER_OCI_FAILED', /answered 400; check the reference/],
    ['answers 429', refuse(429), 'TEMPER_OCI_FAILED', /answered 429; repeat the command later/],
    ['answers 503', refuse(503), 'TEMPER_OCI_FAILED', /answered 503; repeat the command later/],
    ['sends a page for users', page, 'TEMPER_OCI_CONTENT_INVALID', /not a JSON object/],
    ['ends in the middle of an answer', truncate, 'TEMPER_OCI_FAILED', /then repeat the command/],
  ];
  for (const [what, hostile, code, message] of refusals) {
    it(`a pull from a registry that ${what} writes nothing, and works once the registry does`, async () => {
      await pushed();
      registry.hostile = (request, response) => {
        hostile(request, response);
        return true;
      };
      const trusted = { file: 'out.json', attestation: 'out.attestation.json', trustedKey: 'key.pem' };
      await assert.rejects(pulled(trusted), { code, message });
      assert.deepEqual(await files(), []);
      registry.hostile = () => false;
      await pulled(trusted);
    });
  }

  it('a push to a registry that refuses leaves no tag, and works once the registry does', async () => {
    for (const status of [401, 403, 500]) {
      registry.hostile = (request, response) => {
        if (request.method !== 'PUT' || request.url?.includes('/manifests/') !== true) return false;
        refuse(status)(request, response);
        return true;
      };
      await assert.rejects(pushed(), { code: /^TEMPER_OCI_(?:UNAUTHORIZED|FAILED)$/ });
      assert.equal(registry.manifests.has('v1'), false);
    }
    registry.hostile = () => false;
    await pushed();
  });

  it('an attestation verifies with each of several trusted keys, and not when the signing key is not among them', async () => {
    await pushed();
    const [own, other] = await Promise.all(
      ['key.pem', 'other.pem'].map((name) => readFile(join(folder, name), 'utf8')),
    );
    const trusted = { file: 'out.json', attestation: 'out.attestation.json', trustedKey: 'out.keys.pem' };
    await writeFile(join(folder, 'out.keys.pem'), `${other}${own}`);
    await pulled(trusted);
    const verify = async (changes: { attestation?: string } = {}) => {
      const io = anIo();
      await toolVerify({ ...trusted, output: 'text', ...changes }, io);
      return io.printed();
    };
    assert.match(await verify(), /the trusted key signed its attestation/);
    const envelope = await readFile(join(folder, 'out.attestation.json'), 'utf8');
    const { payload, ...rest } = JSON.parse(envelope) as { payload: string };
    const statement = Buffer.from(payload, 'base64').toString('utf8').replace('Session', 'Shared');
    const editedPayload = Buffer.from(statement).toString('base64');
    await writeFile(join(folder, 'out.edited.json'), JSON.stringify({ ...rest, payload: editedPayload }));
    const invalid = { code: 'TEMPER_ATTESTATION_INVALID', message: /nothing was imported/ };
    await assert.rejects(verify({ attestation: 'out.edited.json' }), invalid);
    await writeFile(join(folder, 'out.keys.pem'), other ?? '');
    await assert.rejects(verify(), invalid);
  });
});
