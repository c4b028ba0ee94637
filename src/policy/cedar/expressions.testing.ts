/** Cedar expressions for the patterns of Temper. Only patterns that `like` can express; see ADR 132. */

/** `like` knows one wildcard, which crosses every separator. */
export function like(variable: string, pattern: string): string {
  return `${variable} like "${pattern.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

/** A text in which no character is a wildcard. */
function literal(variable: string, text: string): string {
  return `${variable} == ${quoted(text)}`;
}

export function quoted(text: string): string {
  return JSON.stringify(text);
}

export function either(expressions: readonly string[]): string {
  return expressions.length === 0 ? 'false' : `(${expressions.map((one) => `(${one})`).join(' || ')})`;
}

export function every(expressions: readonly string[]): string {
  return expressions.length === 0 ? 'true' : `(${expressions.map((one) => `(${one})`).join(' && ')})`;
}

function setOf(texts: readonly string[]): string {
  return `[${texts.map(quoted).join(', ')}]`;
}

/** `set.contains` of an empty literal set has no type in Cedar. */
export function oneOf(variable: string, texts: readonly string[]): string {
  return texts.length === 0 ? 'false' : `${setOf(texts)}.contains(${variable})`;
}

/** Kind `name` and, in lower case, kind `tool`: one segment, so a star matches anything. */
export function namePatterns(variable: string, patterns: readonly string[] = []): string {
  return either(patterns.map((pattern) => like(variable, pattern)));
}

export function toolPatterns(variable: string, patterns: readonly string[] = []): string {
  return namePatterns(
    variable,
    patterns.map((pattern) => pattern.trim().toLowerCase()),
  );
}

/** Kinds `model` and `path`: a star stays in its segment, and a double star at the end is any number of segments. */
export function segmentPatterns(variable: string, patterns: readonly string[] = []): string {
  return either(patterns.map((pattern) => segmentPattern(variable, pattern, '/')));
}

function segmentPattern(variable: string, pattern: string, separator: string): string {
  if (pattern === '**') return 'true';
  const rest = `${separator}**`;
  if (pattern.endsWith(rest)) {
    const start = pattern.slice(0, -rest.length);
    return either([literal(variable, start), like(variable, `${start}${separator}*`)]);
  }
  // A text with as many separators as the pattern leaves none for the stars.
  const more = Array.from({ length: pattern.split(separator).length + 1 }, () => '*').join(separator);
  return `${like(variable, pattern)} && !(${like(variable, more)})`;
}

/** Kind `key`: as above, and a star as the last segment is one segment or more. */
export function keyPatterns(variable: string, patterns: readonly string[] = []): string {
  return either(
    patterns.map((pattern) =>
      pattern === '*' || pattern.endsWith('.*') ? like(variable, pattern) : segmentPattern(variable, pattern, '.'),
    ),
  );
}

/** Kind `event`: a star is one token, and `>` at the end is one token or more. */
export function eventPatterns(variable: string, patterns: readonly string[] = []): string {
  return either(
    patterns.map((pattern) =>
      pattern.endsWith('>') ? like(variable, `${pattern.slice(0, -1)}*`) : segmentPattern(variable, pattern, '.'),
    ),
  );
}

/** Kind `host`, over the members `host`, `port` and `address` of the resource. */
export function hostPatterns(patterns: readonly string[] = []): string {
  return either(patterns.map(hostPattern));
}

function hostPattern(pattern: string): string {
  const [name = '', port = '443'] = pattern.split(':');
  const ports = port === '*' ? 'true' : `resource.port == ${port}`;
  return every([ports, hostName(name)]);
}

function hostName(name: string): string {
  const host = 'resource.host';
  if (name === '*' || name === '**') return '!resource.address';
  if (name.startsWith('**.')) return either([literal(host, name.slice(3)), like(host, name.slice(1))]);
  if (name.startsWith('*.')) return `${like(host, name)} && !(${like(host, `*.${name}`)})`;
  return literal(host, name);
}
