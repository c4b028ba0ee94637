import type { FieldPath } from '../../api/findings.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { ImportLog } from './keys/import-log.ts';
import { modelName } from './models.ts';
import { booleanAt, integerAt, textAt } from './source/source-values.ts';

type Routing = NonNullable<AgentSpec['model']['routing']>;

const MODELS = [
  ['simple', 'simple_model'],
  ['medium', 'medium_model'],
  ['complex', 'complex_model'],
] as const;
/** The points from which a message is no longer simple, and complex. They are fixed here. */
const THRESHOLDS = [
  ['simple_threshold', 100],
  ['complex_threshold', 500],
] as const;

/** Models by the complexity of a message. OpenFang names them without their provider: it is that of the primary model. */
export function importRouting(source: JsonObject, primary: string, log: ImportLog): Routing | undefined {
  const isEnabled = booleanAt(source, ['routing', 'enabled'], log) !== false;
  const routing: Routing = {};
  for (const [field, key] of MODELS) {
    const path: FieldPath = ['routing', key];
    const text = textAt(source, path, log);
    if (text === undefined) continue;
    const name = text.includes('/') ? text : `${primary.split('/')[0] ?? ''}/${text}`;
    const usable = modelName(name);
    if (!isEnabled) log.add(path, 'NotImported', { value: text, note: 'routing.enabled is false' });
    else if (usable === undefined) log.invalid(path, text, 'a name of a model that Temper can use');
    else {
      routing[field] = usable;
      const note = usable === text ? {} : { note: `as ${usable}` };
      const result = usable === text ? 'Imported' : 'Changed';
      log.add(path, result, { value: text, field: `spec.model.routing.${field}`, ...note });
    }
  }
  logThresholds(source, log);
  const isUsed = Object.keys(routing).length > 0;
  logEnabled(source, isUsed, log);
  return isUsed ? routing : undefined;
}

function logThresholds(source: JsonObject, log: ImportLog): void {
  for (const [key, points] of THRESHOLDS) {
    const path = ['routing', key];
    const value = integerAt(source, path, log);
    if (value === points) log.imported(path, value, 'spec.model.routing', 'the threshold is fixed');
    else if (value !== undefined) log.add(path, 'NotImported', { value, note: `the threshold is ${points} points` });
  }
}

function logEnabled(source: JsonObject, isUsed: boolean, log: ImportLog): void {
  const path = ['routing', 'enabled'];
  const value = booleanAt(source, path, log);
  if (value === undefined) return;
  if (!value) log.imported(path, value, 'spec.model.routing', 'stays empty');
  else if (isUsed) log.imported(path, value, 'spec.model.routing');
  else log.add(path, 'NotImported', { value, note: 'the file names no models for it; set spec.model.routing' });
}
