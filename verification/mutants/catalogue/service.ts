import { type Mutant, SETTINGS, TASK } from '../mutant.ts';
import { CALM, oneAt } from '../scenario.ts';

/** Where the settings service is about to write. */
const PUT = 'sendWritten(reply, await this.service.put(writeRequestOf(request), valueTextOf(request)));';

/** Mistakes that any service could have. */
export const SERVICE_MUTANTS: readonly Mutant[] = [
  {
    name: 'not-drained',
    says: 'SIGTERM ends a service at once',
    claim: 'responses',
    aspect: 'restarts',
    bundle: SETTINGS,
    original: 'app.get(HealthRegistry).markShuttingDown();',
    mistake: 'process.exit(0);',
    scenario: oneAt('settings', 'rolling-restart'),
    caughtBy: /(PUT|GET) setting.* got (?!500)\S+ during rolling-restart/,
  },
  {
    name: 'secret-logged',
    says: 'values of settings are logged',
    claim: 'logs',
    aspect: 'secrets',
    bundle: SETTINGS,
    original: PUT,
    mistake: 'console.log(JSON.stringify({ msg: `put ${valueTextOf(request)}` }));' + PUT,
    scenario: CALM,
    caughtBy: /logs: no secret: .*value of a setting/,
  },
  {
    name: 'secret-logged-in-base64',
    says: 'values of settings are logged in base64',
    claim: 'logs',
    aspect: 'secrets',
    bundle: SETTINGS,
    original: PUT,
    mistake:
      'console.log(JSON.stringify({ body: Buffer.from(`{"settingValue":${valueTextOf(request)}}`).toString("base64") }));' +
      PUT,
    scenario: CALM,
    caughtBy: /logs: no secret: .*value of a setting/,
  },
  {
    name: 'secret-logged-in-an-address',
    says: 'values of settings are logged percent-encoded',
    claim: 'logs',
    aspect: 'secrets',
    bundle: SETTINGS,
    original: PUT,
    mistake:
      'console.log(JSON.stringify({ url: `/?value=${encodeURIComponent(valueTextOf(request))}` }));' + PUT,
    scenario: CALM,
    caughtBy: /logs: no secret: .*value of a setting/,
  },
  {
    name: 'unexpected-error',
    says: 'an error is logged that no outage explains',
    claim: 'logs',
    aspect: 'errors',
    bundle: TASK,
    original: 'this.counts.fired.inc(batch.fired);',
    mistake: 'this.counts.fired.inc(batch.fired);\n      this.logger.error("fires were counted");',
    scenario: CALM,
    caughtBy: /logs: no defect: .*fires were counted/,
  },
];
