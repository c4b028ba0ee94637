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

describe('parseOperatorConfig', () => {
  it('parseOperatorConfig parses a valid configuration', () => {
    assert.equal(parseOperatorConfig(GOOD).sandboxClasses[0]?.workspace, '1Gi');
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
  ] as const) {
    it(`parseOperatorConfig throws when ${what}`, () => {
      assert.throws(
        () => parseOperatorConfig(text),
        (error) => isTemperError(error, 'TEMPER_CONFIGURATION_INVALID') && message.test(error.message),
      );
    });
  }
});
