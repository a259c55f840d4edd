import { Random } from '#platform/random.ts';
import { Zones } from '#verification/oracle/zones.ts';
import { Caller, Traffic } from './caller.ts';
import { type Application, DEMO_APPLICATION, type LoadContext } from './context.ts';
import { type BusinessUnitChange, Journal } from './journal.ts';
import type { PlatformUnderLoad } from './platform.ts';
import { type Crew, type Profile, UNDER_FAULTS } from './profiles.ts';
import { publishChange } from './published-messages.ts';
import { HORIZON_DAYS, makeCalendar, scheduleKinds, ZONES } from './recurrences.ts';
import { signIn } from './sessions.ts';

/**
 * Days before and after now for which zone offsets are read. A monthly trigger may have two occurrences due,
 * and some schedules are due after the horizon.
 */
const ZONE_DAYS = { back: 70, ahead: HORIZON_DAYS + 10 };

export interface LoadOptions {
  readonly profile?: Profile;
  readonly application?: Application;
}

/** All callers of a run and their journal. */
export class Load {
  readonly journal: Journal;
  readonly traffic: Traffic;
  readonly context: LoadContext;
  readonly zones: Zones;
  readonly profile: Profile;
  readonly #stop: AbortController;
  readonly #stopScheduleChanges = new AbortController();
  readonly #crews: Promise<unknown>[] = [];
  #scheduleChangesEnded: Promise<unknown> = Promise.resolve();

  private constructor(
    context: LoadContext,
    rest: { zones: Zones; traffic: Traffic; profile: Profile; stop: AbortController },
  ) {
    this.journal = context.journal;
    this.context = context;
    this.traffic = rest.traffic;
    this.zones = rest.zones;
    this.profile = rest.profile;
    this.#stop = rest.stop;
  }

  /** Signs in and creates the calendar. The workers start later. @throws {Error} when that fails */
  static async prepare(
    platform: PlatformUnderLoad,
    seed: number,
    { profile = UNDER_FAULTS, application = DEMO_APPLICATION }: LoadOptions = {},
  ): Promise<Load> {
    const stop = new AbortController();
    const random = new Random(seed);
    const traffic = new Traffic();
    const context = {
      caller: new Caller({ traffic, random, stop: stop.signal }),
      journal: new Journal(),
      random,
      kinds: [],
      stop: stop.signal,
      urls: {
        auth: platform.url('auth'),
        settings: platform.url('settings'),
        task: platform.url('task'),
        customers: platform.url('customers'),
      },
      application,
      admin: { token: '' },
    };
    const tokens = await signIn(context);
    if (tokens === null) throw new Error('the load could not sign in');
    context.admin.token = tokens.accessToken;
    const zones = await Zones.read((sql, values) => platform.query('task', [sql, values]), ZONES, ZONE_DAYS);
    const kinds = scheduleKinds(zones, await makeCalendar(context), profile.horizonDays);
    return new Load({ ...context, kinds }, { zones, traffic, profile, stop });
  }

  /** Starts all workers except those that change schedules. */
  start(platform: PlatformUnderLoad): void {
    const { context } = this;
    const publish = (change: BusinessUnitChange): Promise<boolean> =>
      publishChange(platform, change).then(
        () => true,
        () => false,
      );
    for (const crew of this.profile.crews) void this.#begin(crew, { ...context, publish });
  }

  /** Starts the workers that change schedules. */
  startScheduleChanges(): void {
    const { scheduleChangers } = this.profile;
    this.#scheduleChangesEnded = this.#begin(scheduleChangers, {
      ...this.context,
      stop: this.#stopScheduleChanges.signal,
    });
  }

  async finishScheduleChanges(): Promise<void> {
    this.#stopScheduleChanges.abort();
    await this.#scheduleChangesEnded;
  }

  /** Stops all workers after their current step. @throws the error of a worker that failed */
  async finish(): Promise<void> {
    this.#stopScheduleChanges.abort();
    this.#stop.abort();
    await Promise.all(this.#crews);
  }

  #begin({ count, work, pauseMs }: Crew, context: LoadContext): Promise<unknown> {
    const workers = Array.from({ length: count }, (_, worker) => work(context, worker, pauseMs));
    const ended = Promise.all(workers);
    // finish() reports rejections. This handler keeps them from being unhandled until then.
    ended.catch(() => undefined);
    this.#crews.push(ended);
    return ended;
  }
}
