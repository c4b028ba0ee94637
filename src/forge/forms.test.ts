import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { BUILTIN_FORMS } from '../../test/fixtures/forms/builtins.ts';
import { COMPOSE_FORMS } from '../../test/fixtures/forms/compose.ts';
import type { ToolForm } from '../../test/fixtures/forms/form.ts';
import { LANGUAGE_FORMS } from '../../test/fixtures/forms/language.ts';
import { MODULE_FORMS } from '../../test/fixtures/forms/modules.ts';
import { NAME_FORMS } from '../../test/fixtures/forms/names.ts';
import { REFUSED_FORMS } from '../../test/fixtures/forms/refused.ts';
import { REQUEST_FORMS } from '../../test/fixtures/forms/requests.ts';
import { systemClock } from '../lib/clock.ts';
import { createSupervisor, type Supervisor } from '../sandbox/supervisor.ts';
import { createSchemaCompiler } from '../tools/json-schema/compiler.ts';
import { anOp } from './forge.testing.ts';
import { createForge } from './forge.ts';
import { standaloneContext } from './standalone-context.ts';
import type { RefusedTool, ToolCandidate } from './types.ts';

const GROUPS: Record<string, readonly ToolForm[]> = {
  'programs around a function': MODULE_FORMS,
  'the language': LANGUAGE_FORMS,
  'built-in functions': BUILTIN_FORMS,
  'names and globals': NAME_FORMS,
  requests: REQUEST_FORMS,
  'composed tools': COMPOSE_FORMS,
  'refused source': REFUSED_FORMS,
};

let sandbox: Supervisor;
before(async () => {
  sandbox = await createSupervisor({ clock: systemClock, warm: 1, maxRunners: 2 });
});
after(() => sandbox[Symbol.asyncDispose]());

const schemas = createSchemaCompiler();

async function check({ request }: ToolForm): Promise<ToolCandidate | RefusedTool> {
  const source = { request };
  return createForge({ sandbox, clock: systemClock, schemas }).check(
    source,
    standaloneContext(source, () => {}, anOp()),
  );
}

for (const [group, forms] of Object.entries(GROUPS)) {
  describe(group, () => {
    for (const form of forms) {
      const { verdict } = form;
      it(`the forge ${'gate' in verdict ? 'refuses' : 'accepts'} ${form.name}`, async () => {
        const result = await check(form);
        if ('gate' in verdict) {
          assert.ok('accepted' in result, 'the tool was accepted');
          assert.deepEqual([result.gate, result.code], [verdict.gate, verdict.code], result.message);
          assert.match(result.message, verdict.reason);
          return;
        }
        if ('accepted' in result) assert.fail(`${result.gate} ${result.code}: ${result.message}`);
        const warnings = result.evidence.warnings.join('\n');
        if (verdict.repaired !== undefined) assert.match(warnings, verdict.repaired);
        else assert.doesNotMatch(warnings, /code: /, 'the source needs no repair');
      });
    }
  });
}

describe('the table of forms', () => {
  it('the table holds at least 200 forms with different names', () => {
    const names = Object.values(GROUPS).flatMap((forms) => forms.map(({ name }) => name));
    assert.ok(names.length >= 200, String(names.length));
    assert.equal(new Set(names).size, names.length);
  });
});
