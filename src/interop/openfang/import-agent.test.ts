import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { dottedPath } from '../../api/findings.ts';
import { createManifestLoader } from '../../api/manifests.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import { PATTERN_RULES } from '../../policy/patterns/pattern-rules.ts';
import { importAgent } from './import-agent.ts';
import { leavesOf } from './keys/import-log.ts';
import { CONTEXT, importToml } from './openfang.testing.ts';
import { RENAMED_TOOLS } from './tool-names.ts';

const resultsOf = (text: string): Record<string, string> =>
  Object.fromEntries(importToml(text).keys.map(({ key, result, field = '-' }) => [key, `${result} ${field}`]));

describe('the import of one manifest of OpenFang', () => {
  it('tools get the names that they have here, and tools that do not exist here are not granted', () => {
    const text =
      'name = "a"\n[capabilities]\ntools = ["file_read", "memory_store", "browser_click", "hand_activate", "odd"]';
    const { agent } = importToml(text);
    assert.deepEqual(agent.spec.grants, { tools: ['file_read', 'memory_set'] });
    const results = resultsOf(text);
    assert.equal(results['capabilities.tools[0]'], 'Imported spec.grants.tools[0]');
    assert.equal(results['capabilities.tools[1]'], 'Changed spec.grants.tools[1]');
    assert.equal(results['capabilities.tools[2]'], 'NotImported -');
    assert.equal(results['capabilities.tools[3]'], 'Refused -');
    assert.equal(results['capabilities.tools[4]'], 'NotImported -');
  });

  it('tools for the web and programs are granted, and the report says what has to be configured', () => {
    const text =
      'name = "a"\n[capabilities]\ntools = ["web_search", "web_fetch", "shell_exec"]\nshell = ["git *", "*"]\nenv_read = ["LANG"]\n[exec_policy]\nallowed_env_vars = ["CI"]\nno_output_timeout_secs = 30';
    const { agent, keys, problems } = importToml(text);
    assert.deepEqual(problems, []);
    assert.deepEqual(agent.spec.grants, {
      tools: ['web_search', 'web_fetch', 'shell_exec'],
      shell: ['git *', '*'],
      environment: ['LANG', 'CI'],
    });
    const noteOf = (name: string): string => keys.find(({ key }) => key === name)?.note ?? '';
    assert.equal(resultsOf(text)['capabilities.tools[0]'], 'Imported spec.grants.tools[0]');
    assert.match(noteOf('capabilities.tools[0]'), /where a search service is configured/);
    assert.match(noteOf('capabilities.tools[2]'), /without a shell, where the sandbox has programs/);
    assert.equal(noteOf('capabilities.shell[0]'), '');
    assert.match(noteOf('capabilities.shell[1]'), /name each program/);
    assert.match(noteOf('capabilities.env_read[0]'), /unless its name is that of a secret/);
    assert.match(noteOf('exec_policy.no_output_timeout_secs'), /silent until the timeout/);
    const denied = text.replace('[exec_policy]', '[exec_policy]\nmode = "deny"');
    assert.equal(importToml(denied).agent.spec.grants?.environment, undefined);
    assert.equal(resultsOf(denied)['exec_policy.allowed_env_vars[0]'], 'NotImported -');
    const wrong = importToml(text.replace('["CI"]', '"CI"')).problems;
    assert.match(wrong.join(), /allowed_env_vars/);
  });

  it('the profiles for research and automation have the search, and no note advises to forge it', () => {
    for (const profile of ['research', 'automation']) {
      const { agent, keys } = importToml(`name = "a"\nprofile = "${profile}"`);
      for (const tool of ['web_search', 'web_fetch']) assert.ok(agent.spec.grants?.tools?.includes(tool), profile);
      assert.deepEqual(agent.spec.grants?.network, ['*']);
      assert.doesNotMatch(JSON.stringify(keys), /forge|not imported yet/);
    }
  });

  it('a tool, a skill and a server that have another form here have a note that names it', () => {
    const { keys } = importToml(`name = "a"
skills = ["notes"]
skills_disabled = true
mcp_servers = ["search"]
[capabilities]
tools = ["a2a_send", "mcp_search_find", "process_start", "docker_exec", "apply_patch", "task_post", "agent_find", "web_crawl"]`);
    const noted = Object.fromEntries(keys.map(({ key, result, note = '' }) => [key, `${result} ${note}`]));
    const expected: readonly (readonly [string, RegExp])[] = [
      ['skills[0]', /Capability of type Skill/],
      ['skills_disabled', /load_tool and load_tool_resource in spec\.denyTools/],
      ['mcp_servers[0]', /temper mcp accept.*spec\.backend\.mcp/],
      ['capabilities.tools[0]', /spec\.backend\.a2a/],
      ['capabilities.tools[1]', /spec\.backend\.mcp/],
      ['capabilities.tools[2]', /ends with its call of shell_exec/],
      ['capabilities.tools[3]', /shell_exec/],
      ['capabilities.tools[4]', /file_edit/],
      ['capabilities.tools[5]', /agent_message gives a task/],
      ['capabilities.tools[6]', /agent_list/],
      ['capabilities.tools[7]', /web_fetch and web_search/],
    ];
    for (const [key, note] of expected) {
      assert.match(noted[key] ?? '', note);
      assert.match(noted[key] ?? '', /^NotImported/);
    }
  });

  it('a message of OpenFang waits for its answer, and a denial of it denies both tools that send', () => {
    const text = 'name = "a"\n[model]\nsystem_prompt = "Use agent_send."\n[capabilities]\ntools = ["agent_send"]';
    const { agent } = importToml(text);
    assert.deepEqual([agent.spec.grants?.tools, agent.spec.prompt.system], [['agent_message'], 'Use agent_message.']);
    for (const tool of ['agent_send', 'agent_message']) {
      const denied = importToml(`name = "a"\ntool_blocklist = ["${tool}"]\n[capabilities]\ntools = ["*"]`);
      assert.deepEqual(denied.agent.spec.denyTools, ['agent_send', 'agent_message']);
    }
  });

  it('a denial by pattern denies what the tools of OpenFang that it matches are here, and the report says so', () => {
    const deniedBy = (pattern: string) => {
      const text = `name = "a"\ntool_blocklist = ["${pattern}"]\n[capabilities]\ntools = ["*"]`;
      return importToml(text).agent.spec.denyTools;
    };
    assert.deepEqual(deniedBy('memory_st*'), ['memory_st*', 'memory_set']);
    assert.deepEqual(deniedBy('*_recall'), ['*_recall', 'memory_get']);
    assert.deepEqual(deniedBy('cron_*'), ['cron_*', 'schedule_create', 'schedule_list', 'schedule_delete']);
    assert.deepEqual(deniedBy('system*'), ['system*', 'time_now']);
    assert.deepEqual(deniedBy('*_send'), ['*_send', 'agent_message']);
    assert.deepEqual(deniedBy('agent_mess*'), ['agent_mess*', 'agent_send']);
    assert.deepEqual(deniedBy('memory_*'), ['memory_*'], 'the pattern covers the names here');
    assert.deepEqual(deniedBy('*'), ['*']);

    const { agent, keys } = importToml(`name = "a"
tool_blocklist = ["memory_st*"]
[capabilities]
tools = ["memory_store", "memory_recall"]`);
    assert.deepEqual(agent.spec.grants?.tools, ['memory_get']);
    const reported = keys.filter(({ key }) => key === 'tool_blocklist[0]');
    assert.deepEqual(
      reported.map(({ result, field, note }) => [result, field, note]),
      [
        ['Imported', 'spec.denyTools[0]', undefined],
        ['Changed', 'spec.denyTools[1]', 'matches memory_store, so it denies memory_set too'],
      ],
    );
  });

  it('every renamed tool is denied by a pattern of its name in OpenFang, wherever the star is', () => {
    for (const [name, local] of RENAMED_TOOLS) {
      for (let at = 0; at <= name.length; at += 1) {
        const pattern = `${name.slice(0, at)}*${name.slice(at)}`;
        const { agent } = importToml(
          `name = "a"\ntool_blocklist = ["${pattern}"]\n[capabilities]\ntools = ["${name}"]`,
        );
        const isDenied = PATTERN_RULES.covers(agent.spec.denyTools ?? [], local, 'tool');
        assert.ok(isDenied && agent.spec.grants?.tools === undefined, pattern);
      }
    }
  });

  it('an empty or absent list of tools grants no tool, and the report says that OpenFang grants all', () => {
    for (const text of ['name = "a"', 'name = "a"\n[capabilities]\ntools = []']) {
      const { agent, keys } = importToml(text);
      assert.equal(agent.spec.grants, undefined);
      assert.match(keys.find(({ key }) => key === 'capabilities.tools')?.note ?? '', /all tools in OpenFang/);
    }
  });

  it('a profile stands in for an empty list of tools only', () => {
    const messaging = importToml('name = "a"\nprofile = "messaging"').agent.spec.grants;
    assert.deepEqual(messaging?.tools, ['agent_message', 'memory_set', 'memory_get']);
    assert.deepEqual(messaging?.messages, ['*']);
    const named = importToml('name = "a"\nprofile = "full"\n[capabilities]\ntools = ["file_read"]').agent.spec.grants;
    assert.deepEqual(named, { tools: ['file_read'] });
  });

  it('the allow list, the block list and the execution policy limit the tools and stay as denials', () => {
    const { agent } = importToml(`name = "a"
tool_allowlist = ["file_*", "memory_store"]
tool_blocklist = ["file_list", "docker_exec"]
[capabilities]
tools = ["file_read", "file_list", "file_write", "memory_store", "memory_recall"]
network = ["api.example.com"]
shell = ["git *"]
[exec_policy]
allow_shell = false
allow_network = false
allow_file_write = false`);
    assert.deepEqual(agent.spec.grants, { tools: ['file_read', 'memory_set'] });
    assert.deepEqual(agent.spec.denyTools, ['file_list', 'docker_exec', 'file_write']);
  });

  it('an agent that may start agents may start children within its own permissions', () => {
    const text = 'name = "a"\n[capabilities]\nagent_spawn = true\nagent_kill = ["Worker *"]';
    const { spec } = importToml(text).agent;
    assert.deepEqual([spec.children, spec.grants], [{ inherit: true }, { kill: ['worker-*'] }]);
    assert.equal(importToml(text.replace('true', 'false')).agent.spec.children, undefined);
  });

  it('names and patterns of agents get the form of object names', () => {
    const { agent } = importToml(
      'name = "Customer Support!"\n[capabilities]\nagent_message = ["Sales Team", "ops-*", "*"]',
    );
    assert.equal(agent.metadata.name, 'customer-support');
    assert.deepEqual(agent.spec.grants?.messages, ['sales-team', 'ops-*', '*']);
    assert.match(importToml('name = "研究"').agent.metadata.name, /^agent-[0-9a-f]{8}$/);
    assert.match(importToml(`name = "${'a'.repeat(80)}"`).agent.metadata.name, /^a{54}-[0-9a-f]{8}$/);
    assert.equal(importToml('version = "1"').agent.metadata.name, 'file');
  });

  it('models of the configured default, aliases and fallbacks are named once each', () => {
    const { agent } = importToml(`name = "a"
[model]
provider = "default"
model = "default"
api_key_env = "A_KEY"
[[fallback_models]]
provider = "default"
model = "default"
[[fallback_models]]
provider = "default"
model = "gemini-2.0-flash"
[[fallback_models]]
provider = "claude_code"
model = "Default/gemini-2.0-flash"`);
    assert.deepEqual(agent.spec.model, {
      primary: 'default/default',
      fallbacks: ['default/gemini-2.0-flash', 'claude-code/Default/gemini-2.0-flash'],
    });
  });

  it('routing names models of the provider of the primary model, with fixed thresholds', () => {
    const text = `name = "a"
[model]
provider = "anthropic"
model = "sonnet"
[routing]
simple_model = "haiku"
complex_model = "openai/gpt-4o"
simple_threshold = 100
complex_threshold = 900`;
    assert.deepEqual(importToml(text).agent.spec.model.routing, {
      simple: 'anthropic/haiku',
      complex: 'openai/gpt-4o',
    });
    const results = resultsOf(text);
    assert.equal(results['routing.simple_model'], 'Changed spec.model.routing.simple');
    assert.equal(results['routing.complex_model'], 'Imported spec.model.routing.complex');
    assert.equal(results['routing.simple_threshold'], 'Imported spec.model.routing');
    assert.equal(results['routing.complex_threshold'], 'NotImported -');
    const off = text.replace('[routing]', '[routing]\nenabled = false');
    assert.equal(importToml(off).agent.spec.model.routing, undefined);
  });

  it('schedules of both forms become due times', () => {
    const scheduleOf = (text: string) => {
      const { keys, agent } = importToml(`name = "a"\n${text}`);
      assert.deepEqual(
        keys.filter(({ result }) => result === 'Unknown'),
        [],
      );
      const { message, ...schedule } = agent.spec.schedule ?? {};
      assert.equal(message !== undefined, agent.spec.schedule !== undefined);
      return schedule;
    };
    const hourly = { mode: 'Periodic', cron: 'every 1h' };
    assert.deepEqual(scheduleOf('[schedule]\nperiodic = { cron = "every 1h" }'), hourly);
    assert.deepEqual(scheduleOf('[schedule]\nmode = "periodic"\ncron = "0 9 * * *"'), {
      mode: 'Periodic',
      cron: '0 9 * * *',
    });
    const often = { mode: 'Continuous', interval: '120s' };
    assert.deepEqual(scheduleOf('[schedule]\ncontinuous = { check_interval_secs = 120 }'), often);
    assert.deepEqual(scheduleOf('[schedule]\nmode = "continuous"\ninterval_seconds = 5'), {
      mode: 'Continuous',
      interval: '60s',
    });
    assert.deepEqual(scheduleOf('[schedule]\nmode = "continuous"'), { mode: 'Continuous', interval: '60s' });
    for (const text of [
      'schedule = "reactive"',
      '[schedule]\nmode = "reactive"\ncron = "0 9 * * *"',
      '[schedule]\nproactive = { conditions = ["memory:plan"] }',
      '[schedule]\nmode = "proactive"\n[[schedule.triggers]]\nevent = "tide_turned"\npattern = "x"',
      '[schedule]\nmode = "proactive"',
    ])
      assert.deepEqual(scheduleOf(text), {}, text);
  });

  it('events that Temper publishes become triggers, in both forms, and the report has the others', () => {
    const conditions =
      '[schedule]\nproactive = { conditions = ["event:agent_spawned", "memory:plan", "event:lifecycle"] }';
    const { triggers = [], mode } = importToml(`name = "a"\n${conditions}`).agent.spec.schedule ?? {};
    assert.equal(mode, 'Proactive');
    assert.deepEqual(
      triggers.map(({ name, subject }) => [name, subject]),
      [
        ['trigger-1', 'temper.agent.running'],
        ['trigger-2', 'temper.agent.*'],
      ],
    );
    const results = resultsOf(`name = "a"\n${conditions}`);
    assert.equal(results['schedule.proactive.conditions[0]'], 'Changed spec.schedule.triggers[0].subject');
    assert.equal(results['schedule.proactive.conditions[1]'], 'NotImported -');
    const documented = (pattern: string) =>
      `name = "a"\n[schedule]\nmode = "proactive"\n[[schedule.triggers]]\nevent = "file_created"\npattern = "${pattern}"`;
    const [file] = importToml(documented('/data/inbox/*.json')).agent.spec.schedule?.triggers ?? [];
    assert.equal(file?.subject, 'temper.file.created');
    assert.match(file?.message ?? '', /Leave out what does not match "\/data\/inbox\/\*\.json"\.$/);
    const report = resultsOf(documented('/data/*'));
    assert.equal(report['schedule.mode'], 'Imported spec.schedule.mode');
    assert.equal(report['schedule.triggers[0].pattern'], 'Changed spec.schedule.triggers[0].message');
    const hostile = importToml(documented('{{event.secret}}'));
    assert.doesNotMatch(hostile.agent.spec.schedule?.triggers?.[0]?.message ?? '', /secret/);
    assert.equal(resultsOf('name = "a"\n[schedule]\nmode = "proactive"')['schedule.mode'], 'NotImported -');
  });

  it('an agent with the tool that makes schedules may make as many as OpenFang allows', () => {
    const of = (tools: string) => importToml(`name = "a"\n[capabilities]\ntools = ${tools}`).agent.spec.grants;
    assert.equal(of('["cron_create", "cron_list"]')?.schedules, 50);
    assert.equal(of('["cron_list"]')?.schedules, undefined);
    const results = resultsOf('name = "a"\n[capabilities]\ntools = ["cron_create"]');
    assert.equal(results['capabilities.tools'], 'Imported spec.grants.schedules');
  });

  it('an agent that publishes events may publish those that OpenFang lets it publish, and the report says what a subscription needs', () => {
    const of = (tools: string) => importToml(`name = "a"\n[capabilities]\ntools = ${tools}`);
    const eventsOf = (tools: string) => of(tools).agent.spec.grants?.events;
    assert.deepEqual(eventsOf('["event_publish"]'), { publish: ['>'] });
    assert.deepEqual(eventsOf('["*"]'), { publish: ['>'] });
    assert.equal(eventsOf('["event_subscribe", "file_read"]'), undefined);
    const notes = of('["event_subscribe"]').keys.map(({ result, note = '' }) => `${result} ${note}`);
    assert.match(notes.join('\n'), /^NotImported no subject is granted .* spec\.grants\.events\.subscribe$/m);
    assert.deepEqual(importToml('name = "a"\nprofile = "full"').agent.spec.grants?.events, { publish: ['>'] });
    const results = resultsOf('name = "a"\n[capabilities]\ntools = ["event_publish"]');
    assert.equal(results['capabilities.tools'], 'Imported spec.grants.events.publish[0]');
    const denied = 'name = "a"\ntool_blocklist = ["event_publish"]\n[capabilities]\ntools = ["event_publish"]';
    assert.equal(importToml(denied).agent.spec.grants?.events, undefined);
  });

  it('approvals by tool become the loosest preset under which these tools wait', () => {
    const autonomyOf = (tools: string): string | undefined =>
      importToml(`name = "a"
[capabilities]
tools = ["file_read", "file_write"]
[autonomous]
approval_required_for = ${tools}`).agent.spec.autonomy;
    assert.equal(autonomyOf('["file_write", "shell_exec"]'), 'Supervised');
    assert.equal(autonomyOf('["file_read"]'), 'Locked');
    assert.equal(autonomyOf('["shell_exec"]'), undefined);
    assert.equal(autonomyOf('[]'), undefined);
  });

  it('the prompt has the names of tools here, and the report names mentioned tools that the agent lacks', () => {
    const { agent, keys } = importToml(`name = "a"
[model]
system_prompt = "Use memory_store, then my_memory_store, then shell_exec."
[capabilities]
tools = ["memory_store"]`);
    assert.equal(agent.spec.prompt.system, 'Use memory_set, then my_memory_store, then shell_exec.');
    const note = keys.find(({ key }) => key === 'model.system_prompt')?.note ?? '';
    assert.match(note, /memory_store is memory_set.*does not have: shell_exec$/);
  });

  it('keys below a table header are read as their author meant them, and a limit of 0 is no quota', () => {
    const text =
      'name = "a"\n[resources]\nmax_llm_tokens_per_hour = 0\nmax_cost_per_day_usd = 1.5\ntool_blocklist = ["file_read"]';
    assert.deepEqual(importToml(text).agent.spec.denyTools, ['file_read']);
    assert.deepEqual(importToml(text).agent.spec.quotas, { costPerDay: '1.5' });
    assert.equal(resultsOf(text)['resources.tool_blocklist[0]'], 'Imported spec.denyTools[0]');
  });
});

const DOCUMENTED = `name = "writer"
[schedule]
mode = "reactive"
[model]
provider = "anthropic"
model = "claude-sonnet-4"
max_tokens = 1024
temperature = 0.25
[resources]
max_tokens_per_hour = 5000
max_cost_per_hour = 2.5
max_iterations = 40
priority = "low"
[capabilities]
tools = ["file_read", "file_write", "agent_send"]
memory_write = ["self.*"]
agent_spawn = false
agent_message = ["summarizer"]
agent_kill = []
[tools.web_search]
max_results = 3
mcp_servers = ["search"]
[routing]
enabled = true
[autonomous]
approval_required_for = ["agent_send"]
max_actions_per_cycle = 20
idle_timeout_seconds = 600
workspace = "~/writer"
[exec_policy]
allow_file_write = true
tool_allowlist = []
`;

describe('the dialect of the documentation of OpenFang', () => {
  it('every key of the documented dialect is known, and the report says which of them OpenFang does not read', () => {
    const { agent, keys, problems } = importToml(DOCUMENTED);
    assert.deepEqual(problems, []);
    assert.deepEqual(
      keys.filter(({ result }) => result === 'Unknown'),
      [],
    );
    assert.deepEqual(agent.spec, {
      trustPolicyRef: { name: 'openfang' },
      model: { primary: 'anthropic/claude-sonnet-4', temperature: '0.25', maxOutputTokens: 1024 },
      prompt: { system: 'You are a helpful AI agent.' },
      grants: {
        tools: ['file_read', 'file_write', 'agent_message'],
        memory: { write: ['self.*'] },
        messages: ['summarizer'],
      },
      quotas: { tokensPerHour: 5000, costPerHour: '2.5' },
      limits: { turns: 40, steps: 20 },
      idle: { scaleToZeroAfter: '600s' },
      autonomy: 'Supervised',
      priority: 'Low',
    });
    const noteOf = (name: string): string => keys.find(({ key }) => key === name)?.note ?? '';
    assert.match(noteOf('resources.max_cost_per_hour'), /OpenFang itself does not read this key/);
    assert.match(noteOf('resources.priority'), /stands below \[resources\], where OpenFang does not read it/);
    assert.match(noteOf('capabilities.memory_write[0]'), /no tool of the agent uses it/);
  });
});

describe('manifests of OpenFang that are not imported', () => {
  const refused: readonly (readonly [name: string, text: string, problem: RegExp])[] = [
    ['a WASM module', 'module = "wasm:agent.wasm"', /a WASM module/],
    ['a Python module', 'module = "python:agent.py"', /a Python module/],
    ['an unknown module', 'module = "builtin:other"', /an unknown module/],
    ['a mistyped limit', '[resources]\nmax_llm_token_per_hour = 10', /did you mean max_llm_tokens_per_hour/],
    ['a quota of a wrong type', '[resources]\nmax_llm_tokens_per_hour = "many"', /a limit that cannot be read/],
    ['a negative quota', '[resources]\nmax_cost_per_day_usd = -1', /a number of 0 or more/],
    ['a block list of a wrong type', 'tool_blocklist = "shell_exec"', /is not a list/],
    ['a block list with a malformed pattern', 'tool_blocklist = [""]', /the pattern is empty/],
    ['a prompt that is too long', `[model]\nsystem_prompt = "${'x'.repeat(65_537)}"`, /more than 65536 characters/],
    ['a model name that Temper cannot use', '[model]\nprovider = "p"\nmodel = "a b"', /name of a model/],
  ];
  for (const [name, text, problem] of refused) {
    it(`a manifest with ${name} is refused with its reason`, () => {
      assert.match(
        importToml(
          `${text.startsWith('[') ? '' : `${text}\n`}name = "a"\n${text.startsWith('[') ? text : ''}`,
        ).problems.join(),
        problem,
      );
    });
  }

  it('capabilities without a counterpart are refused by name', () => {
    const results = resultsOf(
      'name = "a"\n[capabilities]\nofp_discover = true\nofp_connect = ["*"]\necon_spend = 5.0\nteleport = true',
    );
    assert.equal(results['capabilities.ofp_discover'], 'Refused -');
    assert.equal(results['capabilities.ofp_connect[0]'], 'Refused -');
    assert.equal(results['capabilities.econ_spend'], 'Refused -');
    assert.equal(results['capabilities.teleport'], 'Unknown -');
  });
});

const KEYS = [
  'name',
  'model',
  'provider',
  'system_prompt',
  'tools',
  'capabilities',
  'network',
  'memory_read',
  'resources',
];
const MORE = [
  'max_tokens_per_hour',
  'schedule',
  'skills',
  'tags',
  'fallback_models',
  'exec_policy',
  '__proto__',
  'constructor',
  'x y',
];
const key = fc.constantFrom(...KEYS, ...MORE);
const scalar = fc.oneof(
  fc.string(),
  fc.double({ noNaN: true }),
  fc.integer(),
  fc.boolean(),
  fc.constantFrom('*', 'default', 'self.*'),
);
const tree = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(key, tie('value')), { maxLength: 6 }).map(objectOf),
  ),
}));

function objectOf(entries: readonly (readonly [string, Json])[]): JsonObject {
  const object: JsonObject = {};
  for (const [name, value] of entries)
    Object.defineProperty(object, name, { value, enumerable: true, writable: true, configurable: true });
  return object;
}

describe('the report of an import', () => {
  it('every value of any manifest is covered by a key of the report, and an agent without problems is valid', () => {
    const loader = createManifestLoader({ patterns: PATTERN_RULES });
    let valid = 0;
    fc.assert(
      fc.property(fc.array(fc.tuple(key, tree.value), { maxLength: 8 }).map(objectOf), (source) => {
        const { agent, keys, problems } = importAgent(source, 'file', CONTEXT);
        const reported = keys.map((entry) => entry.key);
        for (const leaf of leavesOf(source)) assert.ok(isReported(leaf, reported), JSON.stringify({ leaf, reported }));
        if (problems.length > 0) return;
        valid += 1;
        assert.deepEqual(loader.validate(agent as unknown as Json), []);
      }),
      { numRuns: 1_000 },
    );
    assert.ok(valid > 100, `${valid}`);
  });
});

/** Is the path, or one above it, among the reported keys? */
function isReported(path: readonly (string | number)[], reported: readonly string[]): boolean {
  return path.some((_, index) => reported.includes(dottedPath(path.slice(0, index + 1))));
}
