import assert from 'node:assert/strict';

export interface MetricFamilies {
  /** By name. */
  types: Map<string, string>;
  /** Values by name and labels, as they are written. */
  samples: Map<string, number>;
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const LABEL = `[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"`;
const SAMPLE = new RegExp(`^(${NAME})(\\{${LABEL}(?:,${LABEL})*\\})? (\\S+)$`);
const VALUE = /^(?:[+-]?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|Inf)|NaN)$/;

/** Reads Prometheus's text format strictly: each family once and whole, described before its samples, no sample twice. */
export function metricFamilies(text: string): MetricFamilies {
  const types = new Map<string, string>();
  const helped = new Set<string>();
  const samples = new Map<string, number>();
  assert.ok(text.endsWith('\n'), 'the last line ends');
  let current = '';
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (keyword === 'HELP') {
      assert.ok(!helped.has(name), `${name} is described once`);
      assert.notEqual(rest, '', `${name} has a help`);
      helped.add(name);
      current = name;
    } else if (keyword === 'TYPE') {
      assert.equal(name, current, 'TYPE follows HELP');
      assert.match(rest, /^(counter|gauge|histogram|summary)$/);
      types.set(name, rest);
    } else {
      const [, sample = '', labels = '', value = ''] = SAMPLE.exec(line) ?? [];
      assert.match(value, VALUE, line);
      assert.ok(isOf(sample, current, types.get(current)), `${line} is of ${current}`);
      assert.ok(!samples.has(sample + labels), `${sample}${labels} stands once`);
      samples.set(sample + labels, Number(value));
    }
  }
  return { types, samples };
}

function isOf(sample: string, family: string, type: string | undefined): boolean {
  if (type === undefined) return false;
  if (type === 'histogram' || type === 'summary') {
    return sample === family || ['_bucket', '_sum', '_count'].some((suffix) => sample === family + suffix);
  }
  return sample === family;
}
