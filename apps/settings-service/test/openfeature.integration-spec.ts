import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { AstBuilder, GherkinClassicTokenMatcher, Parser, compile } from '@cucumber/gherkin';
import { OpenFeature, ProviderEvents } from '@openfeature/server-sdk';
import type { Client, EvaluationContext, EvaluationDetails, JsonValue } from '@openfeature/server-sdk';
import { SettingsClient } from '@platform/settings-client';
import { SettingsProvider } from '@platform/settings-client/openfeature';
import { TcpProxy, eventually, findFreePorts, testAccessToken } from '@platform/testing';
import { PARTNER, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

/**
 * Folder with additional features, such as `specification/assets/gherkin/evaluation_v2.feature` and
 * `specification/assets/provider-tck/gherkin` of the OpenFeature repository.
 */
const SUITE = process.env['TEST_OPENFEATURE_FEATURES'];
const FOLDERS = [join(__dirname, 'openfeature'), ...(SUITE === undefined ? [] : [SUITE])];
/**
 * Tags of scenarios to skip: capabilities that settings lack (they have no variants and no targeting, and
 * JavaScript has a single number type), and features of the SDK itself.
 */
const LACKING = new RegExp(
  `^@(${[
    'variants',
    'evaluation-details',
    'metadata',
    'targeting',
    'context-handling',
    'numeric-coercion',
    'disabled-flags',
    'reason-codes-disabled',
    'reason-codes-cached',
    'provider-status',
    'hooks',
    'immutability',
    'async',
  ].join('|')})$`,
);

/** The flags that the scenarios evaluate. */
const FLAGS: Record<string, JsonValue> = {
  'boolean-flag': true,
  'boolean-zero-flag': false,
  'string-flag': 'hi',
  'string-zero-flag': '',
  'integer-flag': 10,
  'integer-zero-flag': 0,
  'large-integer-flag': 2_147_483_647,
  'huge-integer-flag': Number.MAX_SAFE_INTEGER,
  'float-flag': 0.5,
  'float-zero-flag': 0,
  'object-zero-flag': {},
  'object-flag': { showImages: true, title: 'Check out these pics!', imagesPerPage: 100 },
  'wrong-flag': 'uno',
  'changing-flag': 'at first',
};

const EVENTS = {
  ready: ProviderEvents.Ready,
  error: ProviderEvents.Error,
  stale: ProviderEvents.Stale,
  change: ProviderEvents.ConfigurationChanged,
} as const;

interface Fired {
  flagsChanged?: string[];
}

/** The state that the steps of one scenario share. */
class Scenario {
  client!: Client;
  type = '';
  key = '';
  default: JsonValue = null;
  context: EvaluationContext = {};
  details!: EvaluationDetails<JsonValue>;
  remembered: JsonValue = null;
  fired: Record<string, Fired[]> = {};

  constructor(readonly domain: string) {}

  async evaluate(): Promise<void> {
    const evaluators: Record<string, () => Promise<EvaluationDetails<JsonValue>>> = {
      Boolean: () => this.client.getBooleanDetails(this.key, this.default as boolean, this.context),
      String: () => this.client.getStringDetails(this.key, this.default as string, this.context),
      Integer: () => this.client.getNumberDetails(this.key, this.default as number, this.context),
      Float: () => this.client.getNumberDetails(this.key, this.default as number, this.context),
      Object: () => this.client.getObjectDetails(this.key, this.default, this.context),
    };
    this.details = await evaluators[this.type]!();
  }
}

/** Parses a flag value in a feature's text. */
function valueOf(type: string, text: string): JsonValue {
  return type === 'String' ? text : (JSON.parse(text.replaceAll('\\"', '"')) as JsonValue);
}

type Step = (scenario: Scenario, groups: string[], table: string[][]) => unknown;

describe('the OpenFeature provider', () => {
  let service: SettingsFixture;
  let network: TcpProxy;

  beforeAll(async () => {
    service = await startSettings();
    network = await TcpProxy.start(service.urls[0]!);
    for (const [name, value] of Object.entries(FLAGS)) await put(name, value);
  });
  afterEach(async () => {
    await OpenFeature.clearProviders();
    OpenFeature.clearHandlers();
    await network.restore();
  });
  afterAll(async () => {
    await network.stop();
    await service.close();
  });

  const put = (name: string, settingValue: JsonValue) =>
    service.api.put(settingPath('Flags', name)).set(PARTNER).send({ settingValue }).expect(200);
  const provide = (scenario: Scenario, baseUrl: string): void => {
    const client = new SettingsClient({ baseUrl, token: testAccessToken({ personas: 2 }) });
    OpenFeature.setProvider(scenario.domain, new SettingsProvider({ client, subsystemName: 'flags' }));
    scenario.client = OpenFeature.getClient(scenario.domain);
  };
  const wasFired = (scenario: Scenario, event: string, withinMs = 10_000) =>
    eventually(() => expect(scenario.fired[event]?.length).toBeGreaterThan(0), { timeoutMs: withinMs });

  const STEPS: readonly (readonly [RegExp, Step])[] = [
    [
      /^a stable provider$/,
      async (scenario) => {
        provide(scenario, network.url);
        await eventually(() => expect(scenario.client.providerStatus).toBe('READY'));
      },
    ],
    [
      /^a unavailable provider$/,
      async (scenario) => {
        const [port] = await findFreePorts(1);
        provide(scenario, `http://127.0.0.1:${String(port)}`);
      },
    ],
    [
      /^a (\w+)-flag with key "(.*)" and a (?:default|fallback) value "(.*)"$/,
      (scenario, [type = '', key = '', text = '']) => {
        Object.assign(scenario, { type, key, default: valueOf(type, text) });
      },
    ],
    [
      /^a context containing a targeting key with value "(.*)"$/,
      (scenario, [targetingKey]) => (scenario.context = { targetingKey: targetingKey! }),
    ],
    [
      /^a (\w+) event handler$/,
      (scenario, [event = '']) => {
        scenario.fired[event] = [];
        scenario.client.addHandler(EVENTS[event as keyof typeof EVENTS], (fired) => {
          scenario.fired[event]?.push((fired ?? {}) as Fired);
        });
      },
    ],
    [
      /^a ready event was fired$/,
      async (scenario) => {
        await wasFired(scenario, 'ready');
        scenario.fired['ready'] = [];
      },
    ],
    [/^the flag was evaluated with details$/, (scenario) => scenario.evaluate()],
    [/^the resolved value is remembered$/, (scenario) => (scenario.remembered = scenario.details.value)],
    [/^the flag was modified$/, (scenario) => put(scenario.key, `modified in ${scenario.domain}`)],
    [
      /^the connection is lost$/,
      async () => {
        await network.refuse();
        network.cut();
      },
    ],
    [/^the connection is restored$/, () => network.restore()],
    [
      /^the resolved details value should be "(.*)"$/,
      ({ details, type }, [text = '']) => expect(details.value).toEqual(valueOf(type, text)),
    ],
    [/^the flag key should be "(.*)"$/, ({ details }, [key]) => expect(details.flagKey).toBe(key)],
    [/^the reason should be "(.*)"$/, ({ details }, [reason]) => expect(details.reason).toBe(reason)],
    [
      /^the error-code should be "(.*)"$/,
      ({ details }, [code]) => expect(details.errorCode ?? '').toBe(code),
    ],
    [/^the error message should be empty$/, ({ details }) => expect(details.errorMessage ?? '').toBe('')],
    // An exception would already have failed the scenario.
    [/^no exception should have been thrown$/, ({ details }) => expect(details).toBeDefined()],
    [
      /^the resolved object value should contain$/,
      ({ details }, _groups, [, ...rows]) => {
        for (const [key = '', type = '', text = ''] of rows)
          expect(details.value).toHaveProperty([key], valueOf(type, text));
      },
    ],
    [
      /^the (\w+) event handler should have been executed(?: within (\d+)ms)?$/,
      (scenario, [event = '', withinMs]) => wasFired(scenario, event, Number(withinMs ?? 10_000)),
    ],
    [
      /^the flag should be part of the event payload$/,
      ({ fired, key }) =>
        expect(fired['change']!.flatMap(({ flagsChanged = [] }) => flagsChanged)).toContain(key),
    ],
    [
      /^the resolved details value should have changed$/,
      ({ details, remembered }) => expect(details.value).not.toEqual(remembered),
    ],
    [
      /^the client should be in (\w+) state$/,
      ({ client }, [state = '']) => eventually(() => expect(client.providerStatus).toBe(state.toUpperCase())),
    ],
  ];

  for (const { name, steps, index } of FOLDERS.flatMap(scenariosOf)) {
    it(`${name} (${String(index)})`, async () => {
      const scenario = new Scenario(`${name} ${String(index)}`);
      for (const { text, table } of steps) {
        const step = STEPS.find(([pattern]) => pattern.test(text));
        expect(step === undefined ? `no step for: ${text}` : null).toBeNull();
        const [pattern, act] = step!;
        await act(scenario, pattern.exec(text)!.slice(1), table);
      }
    }, 30_000);
  }
});

/** Returns the scenarios of a folder's features. Each example is a scenario of its own. */
function scenariosOf(folder: string) {
  let ids = 0;
  const newId = (): string => String((ids += 1));
  const files = readdirSync(folder).filter((file) => file.endsWith('.feature'));
  return files.flatMap((file) => {
    const parser = new Parser(new AstBuilder(newId), new GherkinClassicTokenMatcher());
    const pickles = compile(parser.parse(readFileSync(join(folder, file), 'utf8')), file, newId);
    return pickles
      .filter(({ tags }) => !tags.some((tag) => LACKING.test(tag.name)))
      .map((pickle, index) => ({
        name: `${file}: ${pickle.name}`,
        index,
        steps: pickle.steps.map(({ text, argument }) => ({
          text,
          table: (argument?.dataTable?.rows ?? []).map(({ cells }) => cells.map(({ value }) => value)),
        })),
      }));
  });
}
