"""The model side's contracts: what an adapter turns a step into, who answers it, and how the answer is read.

An adapter (:class:`ABCModel` subclass, one module in ``model_adapters/`` per family) knows a family's wire format: the exact
prompt, the coordinate frame, how the history is written and how a response is parsed. Who generates is an :class:`Engine`.
"""

from guieval.models.adapter import PATCH as PATCH
from guieval.models.adapter import QWEN_PIXELS as QWEN_PIXELS
from guieval.models.adapter import SCALES as SCALES
from guieval.models.adapter import UNBOUND as UNBOUND
from guieval.models.adapter import ABCModel as ABCModel
from guieval.models.adapter import DisputedScale as DisputedScale
from guieval.models.adapter import ImageLimits as ImageLimits
from guieval.models.adapter import Options as Options
from guieval.models.adapter import ParsedResponse as ParsedResponse
from guieval.models.adapter import Surface as Surface
from guieval.models.bill import Bill as Bill
from guieval.models.config import ModelConfig as ModelConfig
from guieval.models.families import Family as Family
from guieval.models.families import KnownModel as KnownModel
from guieval.models.families import Task as Task
from guieval.models.messages import END_TURN as END_TURN
from guieval.models.messages import LOOKS as LOOKS
from guieval.models.messages import Engine as Engine
from guieval.models.messages import ImageForm as ImageForm
from guieval.models.messages import ImageRef as ImageRef
from guieval.models.messages import Message as Message
from guieval.models.messages import ModelInput as ModelInput
from guieval.models.messages import Part as Part
from guieval.models.messages import Request as Request
from guieval.models.messages import Role as Role
from guieval.models.messages import begun as begun
from guieval.models.messages import chat as chat
from guieval.models.prompts import HELPFUL as HELPFUL
from guieval.models.prompts import fill as fill
from guieval.models.prompts import load_template as load_template
from guieval.models.prompts import main_instruction as main_instruction
from guieval.models.prompts import own_response as own_response
from guieval.models.prompts import step_instruction as step_instruction
from guieval.models.response import Response as Response
from guieval.models.scaffold import Scaffold as Scaffold
