import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { openAudit } from '../../audit/recorded-trail.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import { prepareStateFolder } from '../../standalone/trust/trust.ts';
import { createAttestationKey, sealStatement } from '../../tempering/attestation/envelope.ts';
import { parsePackage } from '../../tempering/packages/packages.ts';
import { openRegistry } from '../../tempering/registry/registry.ts';
import { aCaller, anAcceptance, anArtifact } from '../../tempering/tempering.testing.ts';
import { aTerminal, type FakeTerminal } from '../io.testing.ts';
import { attestationKey } from './attestation.ts';
import { toolExport, type ToolExportOptions } from './tool-export.ts';
import { toolImport, type ToolImportOptions } from './tool-import.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'temper-packages-'));
  const records = fileRecordStore(join(folder, 'state'));
  const audit = await openAudit({ records, clock: systemClock });
  const registry = await openRegistry({ records, audit, clock: systemClock, builtIn: new Set() });
  const caller = aCaller();
  await registry.register(anAcceptance(), caller);
  await registry.register(anAcceptance(anArtifact('twin')), caller);
  await registry.register(anAcceptance(anArtifact('twin', { description: 'Another.' })), aCaller({ session: 's-2' }));
  await audit.flush();
});
after(() => rm(folder, { recursive: true, force: true }));

const inFolder = (stdin = ''): FakeTerminal => ({
  ...aTerminal(stdin),
  cwd: folder,
  environment: { XDG_CONFIG_HOME: join(folder, 'config') },
});

async function exported(changes: Partial<ToolExportOptions> = {}): Promise<string> {
  const io = inFolder();
  assert.equal(await toolExport({ tool: 'double', state: 'state', form: 'yaml', ...changes }, io), 0);
  return io.printed();
}

const importing: ToolImportOptions = {
  file: '-',
  agent: 'writer',
  namespace: 'team-a',
  state: 'other',
  output: 'text',
};

describe('temper tool export and import', () => {
  it('export and import copy a tool to another state folder, for its next session', async () => {
    const io = inFolder(await exported());
    assert.equal(await toolImport(importing, io), 0, io.errors());
    assert.match(io.printed(), /the next session of agent team-a\/writer/);
    const waiting = await fileRecordStore(join(folder, 'other')).list('imports');
    assert.equal(waiting.length, 1);
    assert.deepEqual(await fileRecordStore(join(folder, 'other')).list('tools'), []);
  });
  it('export writes a file, and import reads it', async () => {
    await exported({ form: 'json', file: 'double.json' });
    assert.match(await readFile(join(folder, 'double.json'), 'utf8'), /agentos\.emergent-tool\.v1/);
    const io = inFolder();
    assert.equal(await toolImport({ ...importing, file: 'double.json', output: 'json' }, io), 0);
    assert.equal((JSON.parse(io.printed()) as { imported: boolean }).imported, true);
  });
  it('export escapes characters that control a terminal, and the package stays the same', async () => {
    const description = 'c1 \u009b2J bidi \u202e end';
    const records = fileRecordStore(join(folder, 'odd'));
    const audit = await openAudit({ records, clock: systemClock });
    const registry = await openRegistry({ records, audit, clock: systemClock, builtIn: new Set() });
    await registry.register(anAcceptance(anArtifact('odd', { description })), aCaller());
    await audit.flush();
    for (const form of ['yaml', 'json'] as const) {
      const text = await exported({ tool: 'odd', state: 'odd', form });
      assert.doesNotMatch(text, /[^\n\x20-\x7e]/);
      assert.match(text, /c1 \\u009b2J bidi \\u202e end/);
      assert.equal(parsePackage(text).request['description'], description);
    }
  });
  it('export lists the digests of an ambiguous name, and the known tools for an unknown name', async () => {
    const io = inFolder();
    const options = { state: 'state', form: 'yaml' } as const;
    await assert.rejects(toolExport({ ...options, tool: 'twin' }, io), (error) => isTemperError(error, 'TEMPER_USAGE'));
    await assert.rejects(
      toolExport({ ...options, tool: 'triple' }, io),
      (error) => isTemperError(error, 'TEMPER_NOT_FOUND') && error.message.includes('double, twin'),
    );
  });
  it('import refuses a missing file as usage, and warns about an agent that has not run', async () => {
    const missing = toolImport({ ...importing, file: 'missing.yaml' }, inFolder());
    await assert.rejects(missing, { code: 'TEMPER_USAGE', message: /missing\.yaml does not exist/ });
    const first = inFolder(await exported());
    assert.equal(await toolImport({ ...importing, state: 'agents' }, first), 0);
    assert.match(first.errors(), /no agent "writer" has run in agents yet; no agent has run there/);
    await fileRecordStore(join(folder, 'agents')).put('agents', 'analyst', {});
    const second = inFolder(await exported());
    assert.equal(await toolImport({ ...importing, state: 'agents' }, second), 0);
    assert.match(second.errors(), /agents there: analyst/);
    await fileRecordStore(join(folder, 'agents')).put('agents', 'writer', {});
    const known = inFolder(await exported());
    assert.equal(await toolImport({ ...importing, state: 'agents' }, known), 0);
    assert.doesNotMatch(known.errors(), /no agent/);
  });
  it('import refuses a redacted package and a changed package', async () => {
    const redacted = inFolder(await exported({ redact: true }));
    await assert.rejects(toolImport(importing, redacted), (error) => isTemperError(error, 'TEMPER_PACKAGE_INVALID'));
    const changed = inFolder((await exported()).replace('Doubles a number.', 'Doubles any number.'));
    await assert.rejects(toolImport(importing, changed), (error) => isTemperError(error, 'TEMPER_PACKAGE_INVALID'));
  });
  it('import reports the code of the gate that refused', async () => {
    await writeFile(
      join(folder, 'bad.yaml'),
      (await exported()).replace('* 2', '* process.pid').replace(/digest: .*/, ''),
    );
    const io = inFolder();
    assert.equal(await toolImport({ ...importing, file: 'bad.yaml' }, io), 1);
    assert.match(io.errors(), /refused at static: TEMPER_FORGE_STATIC/);
  });
});

describe('attested packages', () => {
  /** A state folder of this user with one tool, its package, its attestation and the public key. */
  async function attested(): Promise<void> {
    const keys = stateKeys(join(folder, 'config/temper'));
    const state = join(folder, 'signed');
    await prepareStateFolder(state, keys);
    const records = fileRecordStore(state);
    const audit = await openAudit({ records, clock: systemClock, key: await keys.findOrCreate() });
    const registry = await openRegistry({ records, audit, clock: systemClock, builtIn: new Set() });
    await registry.register(anAcceptance(), aCaller());
    await audit.flush();
    await exported({ state: 'signed', file: 'tool.yaml', attestation: 'tool.json' });
    const io = inFolder();
    assert.equal(await attestationKey(io), 0);
    await writeFile(join(folder, 'key.pem'), io.printed());
  }
  const imported = (changes: Partial<ToolImportOptions>) =>
    toolImport(
      { ...importing, file: 'tool.yaml', attestation: 'tool.json', trustedKey: 'key.pem', ...changes },
      inFolder(),
    );

  it('a package with its attestation is imported, and one without a fitting attestation leaves nothing behind', async () => {
    await attested();
    const other = createAttestationKey(Buffer.alloc(32, 7)).publicPem;
    await writeFile(join(folder, 'other.pem'), other);
    await writeFile(
      join(folder, 'twin.json'),
      sealStatement({ _type: 'x' }, createAttestationKey(Buffer.alloc(32, 7))),
    );
    const invalid = { code: 'TEMPER_ATTESTATION_INVALID' };
    await assert.rejects(imported({ state: 'fresh', trustedKey: 'other.pem' }), invalid);
    await assert.rejects(imported({ state: 'fresh', attestation: 'twin.json' }), invalid);
    await assert.rejects(imported({ state: 'fresh', attestation: 'twin.json', trustedKey: 'other.pem' }), invalid);
    const withoutKey = { ...importing, file: 'tool.yaml', attestation: 'tool.json', state: 'fresh' };
    await assert.rejects(toolImport(withoutKey, inFolder()), { code: 'TEMPER_USAGE' });
    await assert.rejects(stat(join(folder, 'fresh')), { code: 'ENOENT' });
    assert.equal(await imported({ state: 'fresh' }), 0);
  });
  it('a chain without the signature of this user gets no attestation', async () => {
    await assert.rejects(exported({ attestation: 'none.json', file: 'none.yaml' }), {
      code: 'TEMPER_AUDIT_CHAIN_INVALID',
    });
  });
});
