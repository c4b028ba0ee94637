import assert from 'node:assert/strict';
import { lstat, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import { openAudit } from '../../../audit/recorded-trail.ts';
import { systemClock } from '../../../lib/clock.ts';
import { fileRecordStore } from '../../../lib/file-record-store.ts';
import type { JsonObject } from '../../../lib/json.ts';
import { openRegistry, type Registry } from '../../../tempering/registry/registry.ts';
import { aCaller, anAcceptance, anArtifact, aSourceStore, aUse } from '../../../tempering/tempering.testing.ts';
import { aTerminal } from '../../io.testing.ts';
import type { CliIo } from '../../io.ts';
import { exportTool, type ExportToolOptions } from '../export-tool.ts';

const GITOPS = 'system:serviceaccount:flux-system:kustomize-controller';
const LIMITS = { sessionTools: 10, agentTools: 50 };

let folder: string;

/** Changes the state folder; each call opens and closes it as a process does. */
async function changeState(change: (registry: Registry) => Promise<void>): Promise<void> {
  const records = fileRecordStore(join(folder, 'state'));
  const audit = await openAudit({ records, clock: systemClock });
  const sources = await aSourceStore(records);
  await change(await openRegistry({ records, audit, clock: systemClock, builtIn: new Set(), sources }));
  await audit.flush();
}

async function promoteToAgent(registry: Registry, name: string): Promise<string> {
  const accepted = anAcceptance(anArtifact(name));
  await registry.register(accepted, aCaller());
  const owner = { agent: 'analyst', namespace: 'team-a' };
  const order = { digest: accepted.digest, owner, to: 'Agent', verdicts: [], actor: 'system', limits: LIMITS } as const;
  await registry.promote({ ...order, sourceWithheld: name === 'withheld' });
  return accepted.digest;
}

async function exported(changes: Partial<ExportToolOptions> = {}): Promise<{ exit: number; out: string }> {
  const io = { ...aTerminal(), cwd: folder, environment: { XDG_CONFIG_HOME: join(folder, 'config') } };
  const options: ExportToolOptions = { tool: 'double', state: 'state', form: 'yaml', output: 'text', gitops: 'repo' };
  const exit = await exportTool({ ...options, ...changes }, io);
  return { exit, out: io.printed() };
}

/** Every file below a folder with its text. */
async function filesBelow(name: string): Promise<Record<string, string>> {
  const root = join(folder, name);
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const texts = await Promise.all(
    files.map(async (path) => [path.slice(root.length + 1), await readFile(path, 'utf8')]),
  );
  return Object.fromEntries(texts.sort(([one = ''], [other = '']) => one.localeCompare(other))) as Record<
    string,
    string
  >;
}

function manifestOf(files: Record<string, string>, name: string): { metadata: JsonObject; spec: JsonObject } {
  const [, text = ''] = Object.entries(files).find(([path]) => path.endsWith(`/${name}`)) ?? [];
  return parse(text) as { metadata: JsonObject; spec: JsonObject };
}

describe('temper tool export --gitops', () => {
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-gitops-'));
    await changeState(async (registry) => {
      await promoteToAgent(registry, 'double');
      await registry.recordUse(aUse(anArtifact('double'), { value: 1 }));
      await promoteToAgent(registry, 'withheld');
      await promoteToAgent(registry, 'demoted');
      await registry.register(anAcceptance(anArtifact('fresh')), aCaller());
    });
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it('the export writes the tool, its Approval and the pages, and a second export changes no byte', async () => {
    const { exit, out } = await exported({ approver: GITOPS });
    assert.equal(exit, 0);
    assert.match(out, /^double \(sha256:[0-9a-f]{64}\) of state: merging the files approves it\n {2}team-a\/double-/);
    const files = await filesBelow('repo');
    assert.deepEqual(
      Object.keys(files).map((path) => path.split('/').at(-1)),
      ['approval.yaml', 'emergenttool.yaml', 'review.html', 'review.md'],
    );
    const { spec } = manifestOf(files, 'approval.yaml');
    assert.deepEqual([spec['decision'], spec['approvedBy']], ['Approve', { username: GITOPS }]);
    assert.equal(spec['nonce'], manifestOf(files, 'emergenttool.yaml').spec['requestNonce']);
    const page = Object.entries(files).find(([path]) => path.endsWith('.md'))?.[1] ?? '';
    assert.match(page, /Uses: 1, of which 1 succeeded/);
    assert.match(page, /tool\.promoted ` by ` system/);
    await exported();
    assert.deepEqual(await filesBelow('repo'), files);
  });

  it('the export prints its files as JSON', async () => {
    const { out } = await exported({ approver: GITOPS, output: 'json', gitops: 'json' });
    const printed = JSON.parse(out) as { tool: string; revoked: boolean; files: string[] };
    assert.deepEqual([printed.tool, printed.revoked, printed.files.length], ['double', false, 4]);
  });

  it('a demoted tool is exported with its revocation beside an unchanged approval', async () => {
    await exported({ tool: 'demoted', gitops: 'demoted', approver: GITOPS });
    const before = manifestOf(await filesBelow('demoted'), 'approval.yaml');
    await changeState(async (registry) => {
      const tool = registry.all().find(({ artifact }) => artifact.name === 'demoted');
      assert.ok(tool);
      await registry.demote(tool.digest, 'wrong results', 'user/ann');
    });
    const { out } = await exported({ tool: 'demoted', gitops: 'demoted' });
    assert.match(out, /revoked, it stays inactive/);
    const files = await filesBelow('demoted');
    assert.deepEqual(manifestOf(files, 'approval.yaml'), before);
    const { spec } = manifestOf(files, 'revocation.yaml');
    assert.deepEqual([spec['decision'], spec['nonce']], ['Revoke', before.spec['nonce']]);
    assert.match(JSON.stringify(spec['reason']), /^"revoked by user\/ann: wrong results/);
  });

  it('the export refuses an approver that the API server would refuse, and a missing one', async () => {
    await assert.rejects(exported({ gitops: 'none' }), { code: 'TEMPER_USAGE', message: /--approver system:/ });
    const own = 'system:serviceaccount:team-a:deployer';
    await assert.rejects(exported({ approver: own }), {
      code: 'TEMPER_USAGE',
      message: /only accounts of other namespaces/,
    });
    await assert.rejects(exported({ approver: 'agent/analyst' }), { code: 'TEMPER_USAGE', message: /contributed/ });
    const { gitops: _, ...packaged } = { gitops: '', approver: GITOPS };
    const io = { ...packaged, tool: 'double', state: 'state', form: 'yaml', output: 'text' } as const;
    await assert.rejects(exportTool(io, {} as CliIo), {
      code: 'TEMPER_USAGE',
      message: /--approver is only for --gitops FOLDER or --connection NAME/,
    });
  });

  it('the export refuses a tool of a session, and a tool without its source', async () => {
    const refusal = (message: RegExp) => ({ code: 'TEMPER_PROMOTION_NOT_READY', message });
    await assert.rejects(exported({ tool: 'fresh', approver: GITOPS }), refusal(/is at tier Session/));
    await assert.rejects(exported({ tool: 'withheld', approver: GITOPS }), refusal(/has no source in its object/));
  });

  it('a link in the folder never leads a file to another place', async () => {
    await mkdir(join(folder, 'elsewhere'));
    await writeFile(join(folder, 'elsewhere', 'target.yaml'), 'kept');
    await mkdir(join(folder, 'linked'));
    await symlink(join(folder, 'elsewhere'), join(folder, 'linked', 'team-a'));
    await assert.rejects(exported({ approver: GITOPS, gitops: 'linked' }), {
      code: 'TEMPER_USAGE',
      message: /behind a symbolic link/,
    });
    await exported({ approver: GITOPS, gitops: 'file-link' });
    const [path = ''] = Object.keys(await filesBelow('file-link'));
    await rm(join(folder, 'file-link', path));
    await symlink(join(folder, 'elsewhere', 'target.yaml'), join(folder, 'file-link', path));
    await exported({ approver: GITOPS, gitops: 'file-link' });
    assert.ok((await lstat(join(folder, 'file-link', path))).isFile());
    assert.equal(await readFile(join(folder, 'elsewhere', 'target.yaml'), 'utf8'), 'kept');
  });
});
