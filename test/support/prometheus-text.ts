import assert from 'node:assert/strict';

export interface MetricFamilies {
  /** The type of each family, by name. */
  types: Map<string, string>;
  /** The value of each sample, by name and labels as written. */
  samples: Map<string, number>;
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const LABEL = `[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"`;
const SAMPLE = new RegExp(`^(${NAME})(\\{${LABEL}(?:,${LABEL})*\\})? (\\S+)$`);
const VALUE = /^(?:[+-]?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|Inf)|NaN)$/;

/** Parses Prometheus's text format strictly: HELP and TYPE precede the samples, and no family and no sample occurs twice. */
export function parsePrometheusText(text: string): MetricFamilies {
  const types = new Map<string, string>();
  const helped = new Set<string>();
  const samples = new Map<string, number>();
  assert.ok(text.endsWith('\n'), 'the text ends with a newline');
  let current = '';
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (keyword === 'HELP') {
      assert.ok(!helped.has(name), `${name} has one HELP line`);
      assert.notEqual(rest, '', `the HELP line of ${name} has a text`);
      helped.add(name);
      current = name;
    } else if (keyword === 'TYPE') {
      assert.equal(name, current, 'TYPE follows HELP');
      assert.match(rest, /^(counter|gauge|histogram|summary)$/);
      types.set(name, rest);
    } else {
      const [, sample = '', labels = '', value = ''] = SAMPLE.exec(line) ?? [];
      assert.match(value, VALUE, line);
      assert.ok(belongsTo(sample, current, types.get(current)), `${line} belongs to ${current}`);
      assert.ok(!samples.has(sample + labels), `${sample}${labels} occurs once`);
      samples.set(sample + labels, Number(value));
    }
  }
  return { types, samples };
}

function belongsTo(sample: string, family: string, type: string | undefined): boolean {
  if (type === undefined) return false;
  if (type === 'histogram' || type === 'summary') {
    return sample === family || ['_bucket', '_sum', '_count'].some((suffix) => sample === family + suffix);
  }
  return sample === family;
}
