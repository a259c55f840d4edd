import { type Mutant, SETTINGS, TASK } from '../mutant.ts';
import { CALM, oneAt } from '../rounds.ts';

/** The statement of the settings service that writes a setting. */
const PUT = 'sendWritten(reply, await this.service.put(writeRequestOf(request), valueTextOf(request)));';

/** Mutants that any service could have. */
export const SERVICE_MUTANTS: readonly Mutant[] = [
  {
    name: 'not-drained',
    description: 'SIGTERM ends a service at once',
    promise: 'responses',
    aspect: 'restarts',
    bundle: SETTINGS,
    original: 'app.get(HealthRegistry).markShuttingDown();',
    mistake: 'process.exit(0);',
    rounds: oneAt('settings', 'rolling-restart'),
    caughtBy: /(PUT|GET) setting.* got (?!500)\S+ during rolling-restart/,
  },
  {
    name: 'secret-logged',
    description: 'values of settings are logged',
    promise: 'logs',
    aspect: 'secrets',
    bundle: SETTINGS,
    original: PUT,
    mistake: 'console.log(JSON.stringify({ msg: `put ${valueTextOf(request)}` }));' + PUT,
    rounds: CALM,
    caughtBy: /logs: no secret: .*value of a setting/,
  },
  {
    name: 'secret-logged-in-base64',
    description: 'values of settings are logged in base64',
    promise: 'logs',
    aspect: 'secrets',
    bundle: SETTINGS,
    original: PUT,
    mistake:
      'console.log(JSON.stringify({ body: Buffer.from(`{"settingValue":${valueTextOf(request)}}`).toString("base64") }));' +
      PUT,
    rounds: CALM,
    caughtBy: /logs: no secret: .*value of a setting/,
  },
  {
    name: 'secret-logged-in-an-address',
    description: 'values of settings are logged percent-encoded',
    promise: 'logs',
    aspect: 'secrets',
    bundle: SETTINGS,
    original: PUT,
    mistake:
      'console.log(JSON.stringify({ url: `/?value=${encodeURIComponent(valueTextOf(request))}` }));' + PUT,
    rounds: CALM,
    caughtBy: /logs: no secret: .*value of a setting/,
  },
  {
    name: 'unexpected-error',
    description: 'an error is logged that no outage explains',
    promise: 'logs',
    aspect: 'errors',
    bundle: TASK,
    original: 'this.counts.fired.inc(batch.fired);',
    mistake: 'this.counts.fired.inc(batch.fired);\n      this.logger.error("fires were counted");',
    rounds: CALM,
    caughtBy: /logs: no defect: .*fires were counted/,
  },
];
