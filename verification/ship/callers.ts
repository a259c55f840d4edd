import { setTimeout as delay } from 'node:timers/promises';
import { FriendlyError } from '#platform/errors.ts';
import { SERVICE_NAMES } from '#platform/programs.ts';
import { auditRun } from '#verification/audit/audit.ts';
import { type Check, flagEmptyComparison } from '#verification/audit/check.ts';
import { gatherFacts, watchApplications } from '#verification/audit/gather.ts';
import { auditLogs, auditTokens, auditTraffic } from '#verification/audit/responses-and-logs.ts';
import { drain } from '#verification/scenarios/drain.ts';
import type { Application } from '#verification/traffic/context.ts';
import type { Journal } from '#verification/traffic/journal.ts';
import { Load } from '#verification/traffic/load.ts';
import type { PlatformUnderLoad } from '#verification/traffic/platform.ts';
import { IN_CONTAINERS } from '#verification/traffic/profiles.ts';
import { copyPublishedMessages } from '#verification/traffic/published-messages.ts';
import { plantTriggers } from '#verification/traffic/triggers.ts';
import type { Overlay } from './overlay.ts';

const SEED = 1;
const TRIGGERS = 12;
/** Time of load before and after each change. */
const LOADED_MS = 4_000;
const SHOWN_FAILURES = 5;

/**
 * The callers of an overlay. They run from its first pods to the audit, and none of their requests may fail.
 */
export class Callers {
  readonly #overlay: Overlay;
  readonly #platform: PlatformUnderLoad;
  readonly #load: Load;
  readonly #secrets: ReadonlyMap<string, string>;

  private constructor(
    overlay: Overlay,
    { load, secrets }: { load: Load; secrets: ReadonlyMap<string, string> },
  ) {
    this.#overlay = overlay;
    this.#platform = overlay.platform;
    this.#load = load;
    this.#secrets = secrets;
  }

  static async begin(overlay: Overlay, application: Application): Promise<Callers> {
    const { platform } = overlay;
    await watchApplications(platform, 'business_unit_facilities');
    await copyPublishedMessages(platform);
    const load = await Load.prepare(platform, SEED, { profile: IN_CONTAINERS, application });
    load.traffic.isStrict = true;
    load.start(platform);
    load.startScheduleChanges();
    // Keep the first values too: the rotation replaces values under the same names.
    const secrets = new Map([
      ['shared secret', application.sharedSecret],
      ...[...overlay.knownSecrets()].map(([name, value]) => [`first ${name}`, value] as const),
    ]);
    return new Callers(overlay, { load, secrets });
  }

  get application(): Application {
    return this.#load.context.application;
  }

  /** Runs `work` under load. @throws {FriendlyError} if a request failed during it */
  async during(phase: string, work: () => Promise<void>): Promise<string> {
    const { traffic, journal, zones } = this.#load;
    traffic.phase = phase;
    const before = traffic.attempts;
    await plantTriggers(this.#platform, journal, zones, TRIGGERS);
    await delay(LOADED_MS);
    await work();
    await delay(LOADED_MS);
    expectClean(auditTraffic(traffic, [], new Map()));
    return `${(traffic.attempts - before).toLocaleString('en')} requests, 0 failures`;
  }

  /** Ends the load and audits the platform. @throws {FriendlyError} with the findings */
  async audit(): Promise<string> {
    const { journal, traffic, zones, profile } = this.#load;
    await this.#load.finish();
    await drain(this.#platform, journal);
    const { horizonDays } = profile;
    const facts = await gatherFacts(this.#platform);
    const checks = [
      ...auditRun(journal, facts, { zones, isUpgrade: false, horizonDays }),
      await auditTokens(this.#replicas(), journal),
      auditTraffic(traffic, [], new Map()),
    ];
    expectClean(...checks);
    return summaryOf(journal);
  }

  /** @throws {FriendlyError} if a log contains a secret of the overlay or of its callers */
  expectNoSecret(logs: ReadonlyMap<string, string>): void {
    const configured = new Map([...this.#secrets, ...this.#overlay.knownSecrets()]);
    const written = [...logs].map(([label, log]) => ({ label, log: () => log }));
    expectClean(auditLogs(written, configured, this.#load.journal));
  }

  #replicas() {
    return SERVICE_NAMES.flatMap((service) =>
      this.#overlay.namespace.pods(`${service}-service`).map(({ name, ip, port }) => ({
        service,
        label: name,
        url: `http://${ip}:${port}`,
        log: () => '',
      })),
    );
  }
}

/** @throws {FriendlyError} with the findings, if there are any */
function expectClean(...checks: readonly Check[]): void {
  const findings = checks
    .map(flagEmptyComparison)
    .flatMap(({ name, findings: found }) => found.map((finding) => `${name}: ${finding}`));
  if (findings.length === 0) return;
  const shown = findings.slice(0, SHOWN_FAILURES).join('\n  ');
  throw new FriendlyError(`${findings.length} findings:\n  ${shown}`);
}

/** E.g. `4,711 writes acknowledged (300 settings, 55 schedules, …), nothing lost, nothing twice`. */
function summaryOf(journal: Journal): string {
  const { settings, schedules, completions, revokedTokens, businessUnitChanges, acknowledged } = journal;
  const counts = {
    settings: settings.length,
    schedules: schedules.length,
    completions: completions.length,
    revocations: revokedTokens.length,
    'changes of business units': businessUnitChanges.length,
  };
  const kinds = Object.entries(counts).map(([kind, count]) => `${count} ${kind}`);
  return `${acknowledged.toLocaleString('en')} writes acknowledged (${kinds.join(', ')}), nothing lost, nothing twice`;
}
