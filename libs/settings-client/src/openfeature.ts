import {
  FlagNotFoundError,
  GeneralError,
  OpenFeatureEventEmitter,
  ProviderEvents,
  StandardResolutionReasons,
  TypeMismatchError,
} from '@openfeature/server-sdk';
import type { EvaluationContext, JsonValue, Provider, ResolutionDetails } from '@openfeature/server-sdk';
import type { SettingsClient } from './settings-client';
import type { SettingsWatch } from './settings-watch';
import { watchOptions } from './watch-options';
import type { WatchOptions } from './watch-options';

/** The client and subsystem that flags are read from. */
export interface SettingsProviderOptions extends Pick<
  WatchOptions,
  'waitSeconds' | 'maxAgeMs' | 'maxEntries'
> {
  /** A client whose persona may read settings. */
  readonly client: SettingsClient;
  /**
   * The subsystem whose settings are the flags. A flag's key is the setting's name, its value the setting's
   * value.
   */
  readonly subsystemName: string;
}

/**
 * Provides settings as flags of OpenFeature's server SDK. Values come from a watch, so they are in memory and
 * at most a second old. There are no variants, and the evaluation context has no effect. So the reason is
 * STATIC, or STALE for the last known value while the service is unreachable.
 */
export class SettingsProvider implements Provider {
  readonly metadata = { name: 'platform-settings' } as const;
  readonly runsOn = 'server';
  readonly events = new OpenFeatureEventEmitter();
  private watch: SettingsWatch | null = null;
  private isInterrupted = false;

  /** @throws {TypeError} for an invalid option */
  constructor(private readonly options: SettingsProviderOptions) {
    watchOptions(options);
  }

  /** @throws if the service cannot be reached. The provider becomes ready as soon as it can. */
  async initialize(): Promise<void> {
    const { client, ...options } = this.options;
    await this.onClose();
    await new Promise<void>((resolve, reject) => {
      let hasBegun = false;
      this.watch = client.watch({
        ...options,
        onChange: ({ settingName }) => {
          this.events.emit(ProviderEvents.ConfigurationChanged, { flagsChanged: [settingName] });
        },
        onState: (interruption) => {
          this.isInterrupted = interruption !== null;
          if (hasBegun) this.events.emit(this.isInterrupted ? ProviderEvents.Stale : ProviderEvents.Ready);
          else if (this.isInterrupted) reject(new GeneralError(String(interruption)));
          else resolve();
          hasBegun = true;
        },
      });
    });
  }

  async onClose(): Promise<void> {
    await this.watch?.close();
    this.watch = null;
  }

  resolveBooleanEvaluation(flagKey: string): Promise<ResolutionDetails<boolean>> {
    return this.resolve(flagKey, (value) => typeof value === 'boolean');
  }

  resolveStringEvaluation(flagKey: string): Promise<ResolutionDetails<string>> {
    return this.resolve(flagKey, (value) => typeof value === 'string');
  }

  resolveNumberEvaluation(flagKey: string): Promise<ResolutionDetails<number>> {
    return this.resolve(flagKey, (value) => typeof value === 'number');
  }

  resolveObjectEvaluation<T extends JsonValue>(
    flagKey: string,
    _defaultValue: T,
    _context: EvaluationContext,
  ): Promise<ResolutionDetails<T>> {
    return this.resolve(flagKey, (value): value is T => typeof value === 'object');
  }

  private async resolve<T extends JsonValue>(
    flagKey: string,
    isOfType: (value: JsonValue) => value is T,
  ): Promise<ResolutionDetails<T>> {
    if (this.watch === null) throw new GeneralError('the provider is closed');
    const { subsystemName } = this.options;
    const found = await this.watch.getDetails(subsystemName, flagKey);
    // Copied, because the SDK's types let the application change the value, while the watch's values are
    // shared and frozen.
    const value = structuredClone(found.value) as JsonValue;
    if (value === null) throw new FlagNotFoundError(`there is no setting ${flagKey}`);
    if (!isOfType(value)) throw new TypeMismatchError(`the setting ${flagKey} has another type`);
    return {
      value,
      reason: found.isStale ? StandardResolutionReasons.STALE : StandardResolutionReasons.STATIC,
    };
  }
}
