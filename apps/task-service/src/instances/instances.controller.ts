import { Body, Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { CurrentCaller, RequirePersona } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { Persona } from '@platform/personas';
import { Documented, validatedBy } from '@platform/service-defaults';
import { CallerScope } from '../access/caller-scope.service';
import { KeysetPages } from '../paging/keyset-page';
import { TaskError } from '../problems/task-error';
import { COMPLETE_INSTANCE, GET_INSTANCE, LIST_INSTANCES } from './instance-docs';
import { InstanceParams, ListInstancesDto, instanceBody, optionalCompleteInstanceBody } from './instance.dto';
import type { CompleteInstanceRequest, InstanceBody } from './instance.dto';
import { InstancesRepository } from './instances.repository';
import { InstancesService } from './instances.service';

@Controller('Instances')
@RequirePersona(Persona.InternalPartner, Persona.Customer, Persona.Owner, Persona.ServiceProvider)
export class InstancesController {
  constructor(
    private readonly service: InstancesService,
    private readonly instances: InstancesRepository,
    private readonly scope: CallerScope,
    private readonly pages: KeysetPages,
  ) {}

  @Post(':id/commands/complete')
  @Documented(COMPLETE_INSTANCE)
  @HttpCode(200)
  async complete(
    @Param() { id }: InstanceParams,
    @Body(validatedBy(optionalCompleteInstanceBody)) request: CompleteInstanceRequest,
    @CurrentCaller() caller: Caller,
  ): Promise<InstanceBody> {
    return instanceBody(await this.service.complete(id, request, caller));
  }

  @Get()
  @Documented(LIST_INSTANCES)
  async list(
    @Query() { facilityId, pageKey, pageSize, ...filters }: ListInstancesDto,
    @CurrentCaller() caller: Caller,
  ): Promise<{ instances: InstanceBody[]; nextPageKey: string | null }> {
    const scope = await this.scope.forList(caller, facilityId);
    const { rows, nextPageKey } = await this.pages.read({
      list: 'instances',
      filters: { facilityId, ...filters },
      pageKey,
      pageSize,
      read: (range) => this.instances.list({ scope, ...filters, ...range }),
      position: ({ dueAt, taskInstanceId }) => [dueAt, taskInstanceId],
    });
    return { instances: rows.map(instanceBody), nextPageKey };
  }

  @Get(':id')
  @Documented(GET_INSTANCE)
  async get(@Param() { id }: InstanceParams, @CurrentCaller() caller: Caller): Promise<InstanceBody> {
    const instance = await this.instances.find(id);
    if (!instance) throw new TaskError('instance-not-found');
    await this.scope.require(caller, instance.facilityId);
    return instanceBody(instance);
  }
}
