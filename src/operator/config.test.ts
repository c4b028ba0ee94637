import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../lib/errors.ts';
import { parseOperatorConfig } from './config.ts';

const GOOD = `
namespace: temper-system
agent: {image: temper, resources: {cpu: 100m, memory: 192Mi, ephemeralStorage: 128Mi}}
sandboxClasses:
  - {name: standard, image: sandbox, resources: {cpu: 250m, memory: 384Mi, ephemeralStorage: 128Mi}, workspace: 1Gi}
gateway: {service: temper-gateway, podLabels: {app: gateway}}
`;

const PROGRAM_IMAGE = `image: "helper@sha256:${'a'.repeat(64)}"`;

/** Later members replace the standard ones. */
function withProgram(members: string): string {
  const standard = { name: 'helper', folder: '/opt/helper', program: 'main.js' };
  const missing = Object.entries(standard).filter(([name]) => !members.includes(`${name}:`));
  return `${GOOD}\nagentPrograms: [{${[...missing.map(([name, value]) => `${name}: ${value}`), members].join(', ')}}]`;
}

describe('parseOperatorConfig', () => {
  it('parseOperatorConfig parses a valid configuration', () => {
    assert.equal(parseOperatorConfig(GOOD).sandboxClasses[0]?.workspace, '1Gi');
  });

  it('an agent program with the least that it needs is valid', () => {
    assert.equal(parseOperatorConfig(withProgram(PROGRAM_IMAGE)).agentPrograms?.[0]?.name, 'helper');
  });

  for (const [what, text, message] of [
    ['a field is missing', GOOD.replace('namespace: temper-system', ''), /namespace/],
    ['a field is unknown', `${GOOD}\ncolour: red`, /colour|additional/],
    ['a quantity is invalid', GOOD.replace('384Mi', 'lots'), /sandboxClasses\.0\.resources\.memory/],
    ['it is not YAML', 'a: [', /YAML/],
    [
      'two classes have the same name',
      GOOD.replace(
        'gateway:',
        '  - {name: standard, image: x, resources: {cpu: 1m, memory: 1Mi, ephemeralStorage: 1Mi}, workspace: 1Mi}\ngateway:',
      ),
      /same name/,
    ],
    ['the image of an agent program has no digest', withProgram('image: helper:1'), /agentPrograms\.0\.image/],
    [
      'the folder of an agent program is not below /opt',
      withProgram(`${PROGRAM_IMAGE}, folder: /run`),
      /agentPrograms\.0\.folder/,
    ],
    [
      'the file of an agent program is above its folder',
      withProgram(`${PROGRAM_IMAGE}, program: ../a.js`),
      /agentPrograms\.0\.program/,
    ],
    [
      'an agent program gets a variable of Node',
      withProgram(`${PROGRAM_IMAGE}, environment: {NODE_OPTIONS: x}`),
      /agentPrograms\.0\.environment/,
    ],
    [
      'an agent program has too little memory',
      withProgram(`${PROGRAM_IMAGE}, memory: 300Mi`),
      /less than 64 MiB for the heap/,
    ],
  ] as const) {
    it(`parseOperatorConfig throws when ${what}`, () => {
      assert.throws(
        () => parseOperatorConfig(text),
        (error) => isTemperError(error, 'TEMPER_CONFIGURATION_INVALID') && message.test(error.message),
      );
    });
  }
});
