import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { publicData } from '../../../test/support/public-data.ts';
import { dottedPath } from '../../api/findings.ts';
import { type LoadedManifests, loadManifests } from '../../api/manifests.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { leavesOf } from '../../interop/openfang/keys/import-log.ts';
import { parseOpenFangManifest } from '../../interop/openfang/source/manifest-text.ts';
import { inherits } from '../../policy/children/inherits.ts';
import { PATTERN_RULES } from '../../policy/patterns/pattern-rules.ts';
import { aTerminal } from '../io.testing.ts';
import { importOpenFang } from './import-openfang.ts';

interface Report {
  source: string;
  keys: { key: string; result: string; field?: string }[];
}

const { file: PUBLIC, skip } = publicData('agents/openfang');

describe('thirty public manifests of OpenFang', { skip }, () => {
  let folder = '';
  let reports: Report[] = [];
  let loaded: LoadedManifests;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-import-'));
    const io = { ...aTerminal(), cwd: folder };
    assert.equal(await importOpenFang({ paths: [PUBLIC], outDir: 'out', policy: 'openfang', output: 'json' }, io), 0);
    const lines = io.printed().trim().split('\n').slice(0, -1);
    reports = lines.map((line) => JSON.parse(line) as Report);
    loaded = await loadManifests([join(folder, 'out')], { patterns: PATTERN_RULES });
  });
  after(async () => {
    await rm(folder, { recursive: true });
  });

  const specs = (): AgentSpec[] =>
    loaded.objects.flatMap(({ object }) => (object.kind === 'Agent' ? [object.spec] : []));

  it('the public manifests become thirty valid agents and a policy', () => {
    assert.deepEqual(loaded.problems, []);
    assert.equal(specs().length, 30);
    assert.equal(loaded.objects.length, 31);
  });

  it('the reports have a result for every key, and a field for every imported one', async () => {
    assert.equal(reports.length, 30);
    for (const { source, keys } of reports) {
      const parsed = parseOpenFangManifest(await readFile(source, 'utf8'), 'toml');
      assert.ok('manifest' in parsed);
      const reported = new Set(keys.map(({ key }) => key));
      const missing = leavesOf(parsed.manifest).filter((path) => !reported.has(dottedPath(path)));
      assert.deepEqual(missing, [], source);
      for (const { key, result, field } of keys) {
        assert.ok(result !== 'Unknown' && result !== 'Refused', `${source} ${key}`);
        assert.equal(field !== undefined, result !== 'NotImported', `${source} ${key}`);
      }
    }
  });

  it('every ordered pair of parent and child is admitted exactly when each grant, model and limit of the child is within the parent', () => {
    const all = specs();
    const pairs = all.flatMap((parent) => all.filter((child) => child !== parent).map((child) => ({ parent, child })));
    assert.equal(pairs.length, 870);
    const titleOf = ({ parent, child }: { parent: AgentSpec; child: AgentSpec }): string =>
      `${child.description} within ${parent.description}`;
    const admitted = pairs.filter(({ parent, child }) => inherits(child, parent).length === 0).map(titleOf);
    const expected = pairs.filter(({ parent, child }) => isWithin(child, parent)).map(titleOf);
    assert.deepEqual(admitted, expected);
    assert.ok(admitted.length > 0 && admitted.length < 870, `${admitted.length}`);
  });
});

type Lists = Readonly<Record<string, readonly string[]>>;

function listsOf({ grants = {}, model }: AgentSpec): Lists {
  const { tools = [], network = [], messages = [], shell = [], spawn = [], memory = {} } = grants;
  const { read = [], write = [] } = memory;
  return { tools, network, messages, shell, spawn, read, write, models: [model.primary, ...(model.fallbacks ?? [])] };
}

/** The documented rule in the form that suffices for these manifests: a star is at the end of a pattern, if anywhere. */
function isWithin(child: AgentSpec, parent: AgentSpec): boolean {
  const has = listsOf(parent);
  const covered = Object.entries(listsOf(child)).every(([name, patterns]) =>
    patterns.every((text) => has[name]?.some((pattern) => isPrefix(pattern, text)) === true),
  );
  const within = (asked: number | undefined, limit: number): boolean => (asked ?? 0) <= limit;
  return (
    covered &&
    (child.schedule === undefined || isDeepStrictEqual(child.schedule, parent.schedule)) &&
    within(child.quotas?.tokensPerHour, parent.quotas?.tokensPerHour ?? Number.POSITIVE_INFINITY) &&
    within(child.model.maxOutputTokens, parent.model.maxOutputTokens ?? Number.POSITIVE_INFINITY) &&
    within(child.limits?.turns, parent.limits?.turns ?? 30)
  );
}

function isPrefix(pattern: string, text: string): boolean {
  return pattern.endsWith('*') ? text.startsWith(pattern.slice(0, -1)) : pattern === text;
}
